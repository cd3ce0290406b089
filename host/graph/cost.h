// SPDX-License-Identifier: Apache-2.0
// The work of a node, from its types.
#pragma once

#include <cstdint>
#include <optional>

#include "host/graph/graph.h"

namespace fusebox {

// The number of terms in the sum for one element of the node's result. Unknown dims count as 1.
int64_t Terms(const Function&, const Node&);

// Returns the arithmetic operations of one run: a multiplication and an addition per term of a product, one
// per element for others, none for ops that move data. Returns nothing if a dim is unknown, or for a custom
// op.
std::optional<uint64_t> ArithmeticOps(const Function&, const Node&);

}  // namespace fusebox
