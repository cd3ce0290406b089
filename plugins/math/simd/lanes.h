// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace fusebox::math {

inline constexpr size_t kMaxLanes = 16;  // of a vector of f32, in all targets

}  // namespace fusebox::math
