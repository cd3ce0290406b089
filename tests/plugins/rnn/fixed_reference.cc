// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/rnn/fixed_reference.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plugins/math/simd/fixed_point.h"

namespace fusebox::testing {
namespace {

using math::Saturate;
using math::ShiftRounded;

// Numbers below are raw 16-bit values; comments state their fractional bits. 1 with 15 fractional bits is
// 32767.
constexpr int32_t kOne = 32767;

int32_t Narrow(int32_t x) { return Saturate<int16_t>(x); }

// Product of numbers with m and n fractional bits: m + n - 15 fractional bits, rounded half up.
int32_t Product(int32_t a, int32_t b) { return Narrow((a * b + (1 << 14)) >> 15); }

// exp(x), both of 15 bits, for x in [-1/4, 0): a series around -1/8.
int32_t ExpOfQuarter(int32_t a) {
  constexpr int32_t kAtCenter = 28918, kThird = 10923;  // exp(-1/8), 1/3
  const int32_t x = a + (1 << 12), square = Product(x, x), cube = Product(square, x);
  const int32_t fourth = ShiftRounded(Product(square, square), 2);
  const int32_t rest = ShiftRounded(Product(fourth + cube, kThird) + square, 1);
  return Narrow(kAtCenter + Product(kAtCenter, x + rest));
}

// exp(-2^k) of 15 bits for k = -2, -1, ...
const std::array<int32_t, 7>& PowersOfE() {
  static const std::array<int32_t, 7> powers = [] {
    std::array<int32_t, 7> values{};
    for (int k = 0; k < 7; ++k)
      values[static_cast<size_t>(k)] =
          static_cast<int32_t>(std::lround(std::exp(-std::ldexp(1.0, k - 2)) * 32768));
    return values;
  }();
  return powers;
}

// exp(x) of 15 bits for x <= 0 of 15 - `whole` bits.
int32_t Exp(int32_t x, int32_t whole) {
  if (x == 0) return kOne;
  const int32_t bits = 15 - whole;
  if (whole > 5 && x < -(32 << bits)) return 0;
  const int32_t quarter = 1 << (bits - 2), part = (x & (quarter - 1)) - quarter;
  int32_t result = ExpOfQuarter(part * (1 << whole));
  const int32_t others = part - x;
  for (int32_t k = 0; k < 7 && k - 2 < whole; ++k) {
    if (others & (quarter << k)) result = Product(result, PowersOfE()[static_cast<size_t>(k)]);
  }
  return result;
}

// 2 / (1 + x) of 13 bits for x in [0, 1] of 15.
int32_t TwoOverOnePlus(int32_t x) {
  constexpr int32_t kStart = 23130, kSlope = -15420;  // 48/17 and -32/17 of 13 bits
  const int32_t half = (x + kOne + 1) / 2;
  int32_t y = kStart + Product(half, kSlope);
  for (int i = 0; i < 3; ++i) y += Narrow(Product(y, (1 << 13) - Product(half, y)) * 4);
  return y;
}

}  // namespace

int16_t ReferenceSigmoid(int16_t x) {
  if (x == 0) return 1 << 14;
  const int32_t of_magnitude = Narrow(TwoOverOnePlus(Exp(x > 0 ? -x : x, 3)) * 2);
  return static_cast<int16_t>(x > 0 ? of_magnitude : kOne - of_magnitude);
}

int16_t ReferenceTanh(int16_t x, int32_t bits) {
  if (x == 0) return 0;
  // exp(-2 |x|): the same raw number with one fractional bit less.
  const int32_t magnitude = Narrow((TwoOverOnePlus(Exp(x > 0 ? -x : x, 16 - bits)) - (1 << 13)) * 4);
  return static_cast<int16_t>(x > 0 ? magnitude : -magnitude);
}

}  // namespace fusebox::testing
