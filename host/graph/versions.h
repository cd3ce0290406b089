// SPDX-License-Identifier: Apache-2.0
// Op versions: a .tflite file states for every op the lowest version that can say what the node says.
#pragma once

#include <string_view>

#include "host/graph/graph.h"

namespace fusebox {

// From operand types, ranks and options. 1 where the op has no rule. Composites and custom ops: 1.
int LowestVersion(const Function&, const Node&);

// The first TensorFlow Lite release that runs this version of the op ("2.3.0"); empty where we do not know.
std::string_view MinRuntime(Op op, int version);

}  // namespace fusebox
