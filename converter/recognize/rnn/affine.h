// SPDX-License-Identifier: Apache-2.0
// Values read as what they compute: sums of products with constant matrices, and the activations around them.
// By data flow only: MatMul, FULLY_CONNECTED and BATCH_MATMUL, one matrix for all gates or one per gate, one
// bias or several come to the same.
#pragma once

#include <string>
#include <vector>

#include "converter/recognize/view.h"

namespace fusebox::converter::recognize {

// A convolution with one entry per spatial dimension; no entries: a product.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::string padding;  // "SAME" or "VALID"
  bool operator==(const Window&) const = default;
};

// Rows and columns of a constant matrix W as in x @ W; `transposed`: the constant holds W with its dimensions
// exchanged. The kernel of a convolution is a matrix whose rows are the inputs under the window.
struct Block {
  ValueId matrix = kNoValue;
  bool transposed = false;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
  int64_t columns = 0;
  Window window = {};
  bool asymmetric = false;  // of i8 weights: rows of the source are quantized with a zero point
  bool joined = false;      // the source is a part of what the product quantizes
};

// Columns [begin, begin + count) of a value.
struct Range {
  int64_t begin, count;
};

struct Product {
  ValueId source;
  Block weights;
};

// The sum of products and of a constant that is the same for every row of the batch.
struct AffineSum {
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
// Adds columns of a constant that is the same for every row.
Status AddBias(const Value&, Range, std::vector<float>& bias);
// The same for values [batch, space.., columns]: the products are convolutions.
Result<AffineSum> ReadConvolutions(const View&, const Activated&);
// Refusals name the op that is in the way.
Result<AffineSum> ReadAffine(const View&, const Activated&);
inline Result<AffineSum> ReadAffine(const View& in, ValueId v) {
  return ReadAffine(in, Activated{"linear", v, false});
}

}  // namespace fusebox::converter::recognize
