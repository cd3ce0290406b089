// SPDX-License-Identifier: Apache-2.0
// Checks of scales and zero points.
#pragma once

#include "host/graph/graph.h"

namespace fusebox {

// Requires finite scales, positive except for constants that are zero, as many as the type demands, and zero
// points that the element type can hold. `all`: also each scale of several and the recorded range, which runs
// do not read; a file may hold thousands.
Status VerifyQuant(const Value&, bool all);
// Requires that the dimension with several scales exists in `type`, and has as many elements as there are
// scales.
Status VerifyAxis(const Quant&, const Type& type);
// Checks all values of a module.
Status VerifyQuants(const Module&);

}  // namespace fusebox
