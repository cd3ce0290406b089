// SPDX-License-Identifier: Apache-2.0
// A SavedModel as TensorFlow.js runs it: node by node as its file has them, with calls flattened and
// variables as constants. Nothing of our importer's graph or passes takes part, so that it can be held
// against what they make of the same file.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::testing {

// What the signature gives on these inputs, in alphabetical order of names both, as f32 whatever the types
// are; or what TensorFlow.js has against it (an op that it does not know).
Result<std::vector<Tensor>> RunTfjsGraph(const std::string& saved_model, const std::string& signature,
                                         const std::vector<Tensor>& inputs);

}  // namespace fusebox::testing
