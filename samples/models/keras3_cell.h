// SPDX-License-Identifier: Apache-2.0
// One step of a recurrent layer, as traced by Keras 3.
#pragma once

#include <vector>

#include "models/saved_model/graph_builder.h"
#include "samples/models/models.h"

namespace fusebox::samples {

using namespace models;

class Keras3Cell {
 public:
  explicit Keras3Cell(const Keras3RnnOptions& options) : options_(options) {}

  int64_t gates() const;
  size_t state_count() const { return options_.layer == Keras3RnnOptions::Layer::kLstm ? 2 : 1; }
  Shape state_shape() const { return {options_.batch, options_.units}; }
  Shape bias_shape() const;

  // The next states, h first; weights are kernel, recurrent kernel and, with use_bias, bias.
  std::vector<Ref> Step(GraphBuilder&, const Ref& x, const std::vector<Ref>& states,
                        const std::vector<Ref>& weights) const;

 private:
  std::vector<Ref> Lstm(GraphBuilder&, const Ref& x, const std::vector<Ref>& states,
                        const std::vector<Ref>& weights) const;
  Ref Gru(GraphBuilder&, const Ref& x, const Ref& h, const std::vector<Ref>& weights) const;
  std::vector<Ref> Products(GraphBuilder&, const Ref& value, const Ref& matrix, const Ref* bias,
                            int64_t count) const;
  std::vector<Ref> Split(GraphBuilder&, const Ref& value, int axis, int64_t count) const;
  Ref Columns(GraphBuilder&, const Ref& value, int64_t from, int64_t count) const;
  Ref MatMul(GraphBuilder&, const Ref& a, const Ref& b) const;
  Ref Act(GraphBuilder&, const Ref& value) const;
  Ref Gate(GraphBuilder&, const Ref& sum) const;

  const Keras3RnnOptions& options_;
};

}  // namespace fusebox::samples
