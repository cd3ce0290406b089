// SPDX-License-Identifier: Apache-2.0
// The work that a node is for XNNPACK, and how long it takes.
#pragma once

#include <fusebox/delegate.hpp>

#include "plugins/math/cost/rates.h"
#include "plugins/math/cost/shapes.h"

namespace fusebox::xnnpack {

math::Work WorkOf(const math::ProductShape&, math::Isa);
math::Work WorkOf(const math::TapsShape&, math::Isa);
math::Work WorkOf(const math::TransposedShape&, math::Isa);
math::Work WorkOf(const math::ElementsShape&, math::Isa);

// Returns the shape of a node as XNNPACK gets it: some products are defined in another way (ops/narrow.h).
std::optional<math::NodeShape> DefinedShapeOf(const sdk::Node& n);

// Nanoseconds on one thread, or FBX_NO_COST.
double CostOf(const sdk::Node& n);
double BorderCost(uint64_t bytes);

// Where there are no estimates (arm64), rejects a depthwise convolution that is many times faster on kernels.
void RejectSlow(const sdk::GraphNode& n);

}  // namespace fusebox::xnnpack
