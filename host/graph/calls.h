// SPDX-License-Identifier: Apache-2.0
// Call graph: checks of Verify across functions, reachable functions, numbers of callers.
#pragma once

#include <map>

#include "host/graph/graph.h"

namespace fusebox {

// Requires that referenced functions exist, match operands and results of their callers, and form no cycle
// and no chain longer than 100.
Status VerifyCalls(const Module&, Strictness);

// The functions named in `from` and all that they reach, each once, callers first.
std::vector<Function*> Reachable(const Module&, std::vector<std::string> from);

// Number of references to each function: by nodes, and by signatures.
using CallCounts = std::map<std::string, int, std::less<>>;
CallCounts CountCalls(const Module&);

}  // namespace fusebox
