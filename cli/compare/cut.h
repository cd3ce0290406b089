// SPDX-License-Identifier: Apache-2.0
// Parts of a model as separate models.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::cli {

// The kept nodes of main, as a model. Its inputs are the values that kept nodes read and no kept node
// computes, except constants and variables; its outputs are the values that other nodes read or the model
// returns. `found`: a value of the run of the whole model, from which an input gets its dims. Empty if
// nothing is kept, nothing is returned, or a handle (a resource) would become an input.
struct Cut {
  std::unique_ptr<Module> module;
  std::vector<ValueId> inputs;  // values of the whole model
};
std::optional<Cut> CutOut(const Module& whole, const std::vector<bool>& kept,
                          const std::function<const Tensor*(ValueId)>& found);

}  // namespace fusebox::cli
