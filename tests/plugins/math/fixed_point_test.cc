// SPDX-License-Identifier: Apache-2.0
// Fixed-point scaling beside its definition in f64, and vectors of it beside single numbers.
#include "plugins/math/simd/fixed_point.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/plugins/math/codes.h"

namespace fusebox::math {
namespace {

constexpr double kScales[] = {1e-12, 1e-9,     1.0 / 1024, 0.0123,   0.25, 0.5,
                              0.75,  0.999999, 1,          1.000001, 3.7,  1000};

std::vector<int32_t> Numbers() {
  std::vector<int32_t> numbers = {INT32_MIN, INT32_MIN + 1, INT32_MAX, INT32_MAX - 1};
  for (int32_t x = -70; x <= 70; ++x) numbers.push_back(x);
  for (int bits = 7; bits < 31; ++bits)
    for (const int32_t off : {-1, 0, 1})
      for (const int32_t sign : {-1, 1}) numbers.push_back(sign * ((1 << bits) + off));
  return numbers;
}

TEST(FixedPoint, HoldsAScaleIn31Bits) {
  for (const double scale : kScales) {
    const FixedPoint fixed(scale);
    if (scale < 0x1p-32) continue;
    EXPECT_GE(fixed.value, 1 << 30) << scale;
    EXPECT_NEAR(std::ldexp(fixed.value, fixed.shift - 31), scale, scale * 0x1p-31);
  }
  EXPECT_EQ(FixedPoint(0).value, 0);
  EXPECT_EQ(FixedPoint(1e-12).Times(INT32_MAX), 0);
}

// Each of two roundings is off by up to half a step. Scales from 1/2 on shift to the left first, which
// saturates.
TEST(FixedPoint, IsWithinAStepOfTheProduct) {
  for (const double scale : kScales) {
    const FixedPoint by(scale);
    const double left = std::ldexp(1, std::max(by.shift, 0));
    for (const int32_t x : Numbers()) {
      const double product = std::clamp<double>(x * left, INT32_MIN, INT32_MAX) / left * scale;
      ASSERT_NEAR(by.Times(x), product, 1 + std::abs(product) * 0x1p-30) << x << " * " << scale;
    }
  }
}

TEST(FixedPoint, RoundsHalvesAwayFromZero) {
  for (const int32_t x : {-7, -5, -3, -1, 1, 3, 5, 7}) {
    EXPECT_EQ(ShiftRounded(x, 1), static_cast<int32_t>(std::round(x / 2.0)));
    EXPECT_EQ(ShiftRounded(2 * x, 2), static_cast<int32_t>(std::round(x / 2.0)));
  }
  EXPECT_EQ(ShiftRounded(INT32_MIN, 31), -1);
  EXPECT_EQ(ShiftRounded(INT32_MAX, 31), 1);
  EXPECT_EQ(ShiftRounded(-9, 0), -9);
}

TEST(FixedPoint, IsTheSameInVectorsOfEveryCode) {
  const std::vector<int32_t> numbers = Numbers();
  for (const MathCode* code : MathCodes()) {
    for (const double scale : kScales) {
      const FixedPoint by(scale);
      std::vector<int32_t> scaled = numbers;
      code->times(by, scaled.data(), scaled.size());
      for (size_t i = 0; i < numbers.size(); ++i)
        ASSERT_EQ(scaled[i], by.Times(numbers[i]))
            << numbers[i] << " * " << scale << ", " << code->lanes << " lanes";
    }
  }
}

}  // namespace
}  // namespace fusebox::math
