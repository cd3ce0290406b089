// SPDX-License-Identifier: Apache-2.0
// Values read as what they compute: sums of products with constant matrices, and the activations around them.
// By data flow only: MatMul, FULLY_CONNECTED and BATCH_MATMUL, one matrix for all gates or one per gate, one
// bias or several come to the same.
#pragma once

#include <string>
#include <vector>

#include "converter/recognize/view.h"

namespace fusebox::converter::recognize {

// Rows and columns of a constant matrix W as in x @ W; `transposed`: the constant holds W with its dimensions
// exchanged.
struct Block {
  ValueId matrix = kNoValue;
  bool transposed = false;
  int64_t row = 0, rows = 0, column = 0, columns = 0;
};

struct Product {
  ValueId source;
  Block weights;
};

// The sum of products and of a constant that is the same for every row of the batch.
struct Affine {
  std::vector<Product> products;
  std::vector<float> bias;  // one value per column
};

// act(inner): the activation as Keras names it, "linear" where there is none.
struct Activated {
  std::string name;
  ValueId inner = kNoValue;
  // the activation belongs to the op that computes `inner`: what is read of it is before that
  bool fused = false;
};

Activated ReadActivation(const View&, ValueId v);
// Refusals name the op that is in the way.
Result<Affine> ReadAffine(const View&, const Activated&);
inline Result<Affine> ReadAffine(const View& in, ValueId v) {
  return ReadAffine(in, Activated{"linear", v, false});
}

}  // namespace fusebox::converter::recognize
