// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {

// Reads no subnormal float, so that threads that flush these to zero get the same values.
FUSEBOX_INLINE inline float FloatFromHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  const uint32_t bias = magnitude >= 0x7c00u ? 224u << 23 : 112u << 23;
  const uint32_t bits = magnitude < 0x400u ? std::bit_cast<uint32_t>(subnormal) : (magnitude << 13) + bias;
  return std::bit_cast<float>(sign | bits);
}

}  // namespace fusebox::cpu
