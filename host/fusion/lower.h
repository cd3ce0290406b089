// SPDX-License-Identifier: Apache-2.0
// Lowers composites and ops with bodies that remain after fusion to nodes that kernels and delegates run.
#pragma once

#include <string>
#include <vector>

#include "host/graph/graph.h"

namespace fusebox {

// Replaces composites by the nodes of their bodies, so that delegates see both sides of a call. These stay:
// composites without a body or with a placeholder, a body with state that several sites share, and a body
// whose inputs are quantized otherwise than the site's operands. The bodies stay in the module.
void InlineBodies(Module&);

// Rewrites STABLEHLO_CASE to IFs and STABLEHLO_REDUCE_WINDOW to STABLEHLO_PAD and REDUCE_WINDOW, and sets the
// attribute `computation` of STABLEHLO_SCATTER. Returns why a node stays as it is; no kernel runs it then.
std::vector<std::string> LowerBodies(Module&);

}  // namespace fusebox
