// SPDX-License-Identifier: Apache-2.0
// Runs a SavedModel in TensorFlow.js: node by node, with inlined calls and constant variables. Independent of
// our importer and passes, so that results can be compared.
#pragma once

#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::testing {

// Results of the signature on these inputs, both in alphabetical order of names, as f32; or the error of
// TensorFlow.js (an unsupported op).
Result<std::vector<Tensor>> RunTfjsGraph(const std::string& saved_model, const std::string& signature,
                                         const std::vector<Tensor>& inputs);

}  // namespace fusebox::testing
