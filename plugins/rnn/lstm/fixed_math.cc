// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/fixed_math.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fusebox::rnn {
namespace {

int32_t Narrow32(int64_t x) { return Saturate<int32_t>(x); }
// Product of 32-bit numbers: m + n - 31 fractional bits.
int32_t Product32(int32_t a, int32_t b) { return Narrow32((int64_t{a} * b + (int64_t{1} << 30)) >> 31); }

}  // namespace

FixedPoint InverseRoot(int32_t x) {
  constexpr int32_t kHalfThree = 3 << 27;  // of 28 and 31 bits
  constexpr int32_t kHalfRootOfTwo = 1518500250;
  FixedPoint result;
  result.value = std::numeric_limits<int32_t>::max();
  if (x <= 1) return result;
  int32_t shift = 11;
  for (; x >= 1 << 29; x /= 4) ++shift;
  const int32_t pairs = (std::countl_zero(static_cast<uint32_t>(x)) - 1) / 2 - 1;
  shift -= pairs;
  x <<= 2 * pairs;
  const int32_t half = ShiftRounded(x >> 1, 1);
  int32_t y = 1 << 28;
  for (int i = 0; i < 5; ++i) {
    const int32_t cube = Narrow32(int64_t{Product32(Product32(y, y), y)} * 64);
    y = Narrow32((int64_t{Product32(kHalfThree, y)} - Product32(half, cube)) * 8);
  }
  result.value = Product32(y, kHalfRootOfTwo) << std::max(-shift, 0);
  result.shift = -std::max(shift, 0);
  return result;
}

FixedNorm::FixedNorm(float scale)
    : by_(scale),
      least_variance_(Saturate<int32_t>(static_cast<int64_t>(std::clamp(10000.0F * scale, 1.0F, 1e9F)))) {
  by_.shift = std::min(by_.shift + 12, 30);
}

void FixedNorm::Apply(const ByteKernels& code, const int16_t* coefficients, const int32_t* bias,
                      int16_t* values, size_t count) const {
  if (count == 0) return;
  int64_t sum = 0;
  int64_t squares = 0;
  code.sum_words(values, count, &sum, &squares);
  // The mean has 10 fractional bits, the variance 20 before the division.
  const auto cells = static_cast<int64_t>(count);
  const auto mean = static_cast<int32_t>(sum * 1024 / cells);
  const int64_t variance = squares * ((int64_t{1} << 20) / cells) - int64_t{mean} * mean;
  const auto whole = static_cast<int32_t>(variance / (1 << 20));
  const FixedPoint deviation = InverseRoot(whole < 1 ? least_variance_ : whole);
  code.normalize({count, coefficients, bias, mean, deviation, by_, values});
}

}  // namespace fusebox::rnn
