// SPDX-License-Identifier: Apache-2.0
// The loop of a Keras recurrent layer, around any cell: a While over tensor lists.
#pragma once

#include <functional>
#include <vector>

#include "samples/models/masked.h"
#include "samples/models/saved_model_builder.h"

namespace fusebox::samples {

struct LayerShape {
  int batch = -1, steps = -1, inputs = 1, units = 1;  // -1: dynamic
  bool time_major = false, go_backwards = false;
  bool last_step_only = false;  // the loop keeps one step only
  bool unknown_rank = false;    // the argument does not say its rank
  Masks masks = Masks::kNone;
  Shape input() const;
  Shape state() const { return {batch, units}; }
};

// The next states from x [batch, inputs], the states and whatever weights the cell reads; the first one is
// the output.
using CellStep = std::function<std::vector<Ref>(GraphBuilder&, const Ref& x, const std::vector<Ref>& states,
                                                const std::vector<Ref>& weights)>;

// The last argument of a masked layer's function, bool [batch, steps] or as the inputs; nothing of another's.
std::vector<Ref> AddMaskArgument(FunctionBuilder& f, const LayerShape& shape);

// Last output, sequence and final states, from values of f; `mask` is AddMaskArgument's.
std::vector<Ref> AddRecurrentLoop(SavedModelBuilder& model, FunctionBuilder& f, const LayerShape& shape,
                                  const Ref& inputs, const std::vector<Ref>& states,
                                  const std::vector<Ref>& weights, const CellStep& step,
                                  const std::vector<Ref>& mask = {});

}  // namespace fusebox::samples
