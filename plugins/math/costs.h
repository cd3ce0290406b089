// SPDX-License-Identifier: Apache-2.0
// What memory and threads cost: the one table that products, sequences and convolutions cut their work by.
// The sizes are those that every core of the last ten years has; results depend on none of them.
#pragma once

#include <cstddef>

namespace fusebox::math {

// Multiply-adds.
inline constexpr size_t kTaskWork = size_t{1} << 14;      // of a task: less costs more to hand out than to do
inline constexpr size_t kParallelWork = size_t{1} << 18;  // from which waking another thread pays

}  // namespace fusebox::math
