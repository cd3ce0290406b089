// SPDX-License-Identifier: Apache-2.0
// Parts of a model as models of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::cli {

// The kept nodes of main, as a model. What they read and no kept node computes becomes an input; what others
// read, or the model returns, an output. Inputs are constants' and variables' never. `found`: a value of the
// run of the whole model, which gives an input its dims. Empty: nothing is kept, nothing is returned, or a
// handle (a resource) would become an input.
struct Cut {
  std::unique_ptr<Module> module;
  std::vector<ValueId> inputs;  // values of the whole model
};
std::optional<Cut> CutOut(const Module& whole, const std::vector<bool>& kept,
                          const std::function<const Tensor*(ValueId)>& found);

}  // namespace fusebox::cli
