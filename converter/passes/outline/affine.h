// SPDX-License-Identifier: Apache-2.0
// Values read as what they compute: sums of products with constant matrices, and the activations around them.
// By data flow only: MatMul, FULLY_CONNECTED and BATCH_MATMUL, one matrix for all gates or one per gate, one
// bias or several come to the same.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::converter::outline {

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

class Expressions {
 public:
  explicit Expressions(const Function& f) : f_(f), uses_(f) {}

  const Function& function() const { return f_; }
  const Uses& uses() const { return uses_; }
  const Node* Producer(ValueId v) const { return v == kNoValue ? nullptr : uses_.producer(v); }
  // Its producer, when that is `op` without an activation of its own.
  const Node* Plain(ValueId v, Op op) const;
  std::optional<std::vector<int64_t>> Ints(ValueId v) const;  // a constant's
  bool IsFull(ValueId v, float value) const;                  // a constant f32 whose elements all are `value`

  Activated ReadActivation(ValueId v) const;
  // Refusals name the op that is in the way.
  Result<Affine> ReadAffine(ValueId v) const { return ReadAffine(Activated{"linear", v, false}); }
  Result<Affine> ReadAffine(const Activated&) const;
  std::string Text(ValueId v) const;  // the op that computes it, for messages

 private:
  const Function& f_;
  Uses uses_;
};

}  // namespace fusebox::converter::outline
