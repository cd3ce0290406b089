// SPDX-License-Identifier: Apache-2.0
// Transcendental functions that vectorize inside Vectorized(). float: accurate to a few ulp; double: the
// standard library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "plugins/cpu/base/simd.h"

namespace fusebox::cpu {

// exp(r) - 1 for |r| < 0.36: a series with relative error below a float's.
FUSEBOX_INLINE inline float SmallExpm1(float r) {
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  return r + r * r * p;
}

// 2^n for n in [-126, 127].
FUSEBOX_INLINE inline float PowerOfTwo(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

FUSEBOX_INLINE inline float FastExp(float x) {
  x = x > 89.0f ? 89.0f : x;  // still overflows to infinity; propagates NaN
  x = x < -104.0f ? -104.0f : x;
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0.693145752f) - n * 1.42860677e-6f;  // ln 2 in two parts
  const int32_t power = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder);
  const int32_t half = power >> 1;  // two factors: 2^128 and subnormal powers are out of range
  return (1.0f + SmallExpm1(r)) * PowerOfTwo(half) * PowerOfTwo(power - half);
}
FUSEBOX_INLINE inline double FastExp(double x) { return std::exp(x); }

FUSEBOX_INLINE inline float FastExpm1(float x) {
  const float near = SmallExpm1(x);
  const float far = FastExp(x) - 1.0f;
  return x > -0.35f && x < 0.35f ? near : far;
}
FUSEBOX_INLINE inline double FastExpm1(double x) { return std::expm1(x); }

FUSEBOX_INLINE inline float FastTanh(float x) {
  const float z = x * x;
  float p = -1382.0f / 155925;  // the series around 0
  p = p * z + 62.0f / 2835;
  p = p * z - 17.0f / 315;
  p = p * z + 2.0f / 15;
  p = p * z - 1.0f / 3;
  const float near = x + x * z * p;
  const float far = 1.0f - 2.0f / (FastExp(2.0f * x) + 1.0f);
  return z < 0.16f ? near : far;
}
FUSEBOX_INLINE inline double FastTanh(double x) { return std::tanh(x); }

FUSEBOX_INLINE inline float FastLogistic(float x) { return 1.0f / (1.0f + FastExp(-x)); }
FUSEBOX_INLINE inline double FastLogistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace fusebox::cpu
