// SPDX-License-Identifier: Apache-2.0
// A layer's definition as a loop over tensor lists, for composites of what has no body of its own.
#pragma once

#include "converter/passes/outline/composite.h"

namespace fusebox::converter::outline {

// Adds the body of the layer's composite, with its loop, to the module. The layer's blocks are whole,
// transposed matrices.
const Function& AddStepsLoop(Module&, const Function& caller, const Layer&);

}  // namespace fusebox::converter::outline
