// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {

// Shifts exponent and fraction into place; multiplying by a power of two then corrects the bias, also for
// subnormals.
FUSEBOX_INLINE inline float FloatFromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = 0x7f800000u | magnitude << 13;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : std::bit_cast<uint32_t>(scaled)));
}

}  // namespace fusebox::cpu
