// SPDX-License-Identifier: Apache-2.0
// A layer's function of TensorFlow has its mask as last operand, and no attribute for the output of masked
// steps.
#pragma once

#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox::converter::recognize {

// Sets zero_output_for_mask of the function's composites that have a mask, from the loops in their bodies.
void CompleteMaskedComposites(const Module&, Function&, std::vector<std::string>& notes);

}  // namespace fusebox::converter::recognize
