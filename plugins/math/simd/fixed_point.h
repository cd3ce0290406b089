// SPDX-License-Identifier: Apache-2.0
// Fixed-point scaling of integers, bit-exact with TFLite (Jacob et al., arXiv 1712.05877, section 2.2 and
// appendix B).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fusebox::math {

// x / 2^bits, rounded half away from zero. bits in [0, 31].
[[gnu::always_inline]] inline int32_t ShiftRounded(int32_t x, int32_t bits) {
  const int32_t mask = static_cast<int32_t>((int64_t{1} << bits) - 1);
  return (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0));
}

// A positive real number: value * 2^(shift - 31), value in [2^30, 2^31).
struct FixedPoint {
  int32_t value = 0;
  int32_t shift = 0;

  FixedPoint() = default;
  explicit FixedPoint(double real) {
    // The bits of a normal number, which take a tenth of the time of frexp and llround.
    const auto bits = std::bit_cast<uint64_t>(real);
    int exponent = static_cast<int>(bits >> 52) - 1022;
    auto fraction = static_cast<int64_t>(((bits & kMantissa) + (kMantissa + 1) + (1 << 21)) >> 22);
    if (exponent <= -1022 || exponent > 1024)
      fraction = std::llround(std::frexp(real, &exponent) * 2147483648.0);
    if (fraction == int64_t{1} << 31) {
      fraction /= 2;
      ++exponent;
    }
    if (exponent < -31) return;
    value = static_cast<int32_t>(exponent > 30 ? std::numeric_limits<int32_t>::max() : fraction);
    shift = std::min(exponent, 30);
  }

  // Rounds twice, as TFLite does for sums of 32 bits: the upper half of twice the product (half towards plus
  // infinity), then the shift (half away from zero). Saturates.
  [[gnu::always_inline]] int32_t Times(int32_t x) const {
    const int32_t left = std::max(shift, 0);
    const int32_t right = std::max(-shift, 0);
    const int64_t wide =
        std::clamp<int64_t>(static_cast<int64_t>(x) << left, std::numeric_limits<int32_t>::min(),
                            std::numeric_limits<int32_t>::max());
    return ShiftRounded(static_cast<int32_t>((wide * value + (int64_t{1} << 30)) >> 31), right);
  }

 private:
  static constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
};

template <class S>
S Saturate(int64_t x) {
  return static_cast<S>(
      std::clamp<int64_t>(x, std::numeric_limits<S>::lowest(), std::numeric_limits<S>::max()));
}

}  // namespace fusebox::math
