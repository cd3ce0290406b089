// SPDX-License-Identifier: Apache-2.0
// The part of Verify that looks at more than one function.
#pragma once

#include "host/graph/graph.h"

namespace fusebox {

// Referenced functions exist, take and return what their callers say, and form no cycle nor a chain longer
// than 100.
Status VerifyCalls(const Module&, Strictness);

}  // namespace fusebox
