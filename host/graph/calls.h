// SPDX-License-Identifier: Apache-2.0
// Checks of Verify across functions.
#pragma once

#include "host/graph/graph.h"

namespace fusebox {

// Requires that referenced functions exist, match operands and results of their callers, and form no cycle
// and no chain longer than 100.
Status VerifyCalls(const Module&, Strictness);

}  // namespace fusebox
