// SPDX-License-Identifier: Apache-2.0
// Estimates of the kernels' times (fusebox.cost/1).
#pragma once

#include <string_view>

#include <fusebox/abi/ext/cost.h>

namespace fusebox::cpu {

struct CostService {
  static constexpr std::string_view extension = FBX_EXT_COST;
  static const void* table() noexcept;
};

}  // namespace fusebox::cpu
