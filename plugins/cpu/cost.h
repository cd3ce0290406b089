// SPDX-License-Identifier: Apache-2.0
// The extension fusebox.cost/1 of the kernels: it counts the work of a node and estimates its time.
#pragma once

#include <string_view>

#include <fusebox/abi/ext/cost.h>

#include "plugins/math/cost/rates.h"
#include "plugins/math/cost/shapes.h"

namespace fusebox::cpu {

math::Work WorkOf(const math::ProductShape&, math::Isa);
math::Work WorkOf(const math::TapsShape&, math::Isa);
math::Work WorkOf(const math::TransposedShape&, math::Isa);
math::Work WorkOf(const math::ElementsShape&, math::Isa);

struct CostService {
  static constexpr std::string_view extension = FBX_EXT_COST;
  static const void* table() noexcept;
};

}  // namespace fusebox::cpu
