// SPDX-License-Identifier: Apache-2.0
// The loop of a Keras recurrent layer, around any cell: a While over tensor lists.
#pragma once

#include <functional>
#include <vector>

#include "models/saved_model/saved_model_builder.h"
#include "samples/models/masked.h"

namespace fusebox::samples {

using namespace models;

struct LayerShape {
  int batch = -1;  // -1: dynamic
  int steps = -1;  // -1: dynamic
  int inputs = 1;
  int units = 1;
  bool time_major = false;
  bool go_backwards = false;
  bool last_step_only = false;  // the loop keeps only one step
  bool unknown_rank = false;    // the argument has no rank
  Masks masks = Masks::kNone;
  Shape input() const;
  Shape state() const { return {batch, units}; }
};

// Computes the next states from x [batch, inputs], the states and the cell's weights; the first one is the
// output.
using CellStep = std::function<std::vector<Ref>(GraphBuilder&, const Ref& x, const std::vector<Ref>& states,
                                                const std::vector<Ref>& weights)>;

// The mask argument, last in a masked layer's function: bool [batch, steps] or like the inputs; else nothing.
std::vector<Ref> AddMaskArgument(FunctionBuilder& f, const LayerShape& shape);

// Returns last output, sequence and final states, as values of f; `mask` is from AddMaskArgument.
std::vector<Ref> AddRecurrentLoop(SavedModelBuilder& model, FunctionBuilder& f, const LayerShape& shape,
                                  const Ref& inputs, const std::vector<Ref>& states,
                                  const std::vector<Ref>& weights, const CellStep& step,
                                  const std::vector<Ref>& mask = {});

}  // namespace fusebox::samples
