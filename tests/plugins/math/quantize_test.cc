// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/simd/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace fusebox::math {
namespace {

// Halves between two steps, values beyond both ends, NaN, and every length up to some vectors of the widest
// code.
TEST(QuantizeRow, IsAlikeInEveryCode) {
  const float special[] = {0.5F, -0.5F, 1.5F, -2.5F, 127.5F, -128.5F, 3e5F, -3e5F, std::nanf("")};
  for (const QuantizeCode* code : QuantizeCodes()) {
    for (size_t n = 0; n < 70; ++n) {
      std::vector<float> x(n);
      for (size_t i = 0; i < n; ++i)
        x[i] = i % 3 == 0 ? special[i / 3 % std::size(special)] : std::sin(static_cast<float>(i * n)) * 90;
      for (const int32_t zero : {0, -128, 5}) {
        const int32_t least = zero == 0 ? -127 : -128;
        std::vector<int8_t> stored(n + 1, 77);
        code->quantize(x.data(), n, 0.7F, zero, least, stored.data());
        for (size_t i = 0; i < n; ++i) {
          const float sum = std::round(static_cast<float>(zero) + x[i] * 0.7F),
                      end = static_cast<float>(least);
          const float expected = sum > 127 ? 127 : sum > end ? sum : end;
          EXPECT_EQ(static_cast<float>(stored[i]), expected) << x[i] << " of " << n;
        }
        EXPECT_EQ(stored[n], 77);
        code->quantize(x.data(), n, 1, zero, least, stored.data());
        if (n > 9 && zero == 0) {
          EXPECT_EQ((std::vector<int8_t>{stored[0], stored[3], stored[6], stored[9]}),
                    (std::vector<int8_t>{1, -1, 2, -3}));
        }
      }
      float low = 9, high = -9;
      EXPECT_EQ(code->range(x.data(), n, &low, &high), n < 25) << "which has NaN at 24";
      float least = 0, most = 0;
      for (const float value : x) {
        least = std::min(least, value);
        most = std::max(most, value);
      }
      EXPECT_EQ(low, least);
      EXPECT_EQ(high, most);
    }
  }
}

TEST(QuantizeRow, CoversTheRange) {
  std::vector<int8_t> stored(5, 55);
  const std::vector<float> x = {-1, 0, 0.5F, 2};
  const auto quantize = [&](const std::vector<float>& values, bool asymmetric) {
    return QuantizeRow(values.data(), 4, asymmetric, stored.data());
  };
  RowScale s = quantize(x, false);
  EXPECT_EQ(stored, (std::vector<int8_t>{-64, 0, 32, 127, 55}));
  EXPECT_EQ(s.zero, 0);
  EXPECT_FLOAT_EQ(s.scale, 2.0F / 127);
  s = quantize(x, true);
  EXPECT_EQ(s.zero, -43);
  EXPECT_EQ(stored, (std::vector<int8_t>{-128, -43, -1, 127, 55}));
  quantize({0, 0, 0, 0}, true);
  EXPECT_EQ(stored, (std::vector<int8_t>{0, 0, 0, 0, 55}));
}

// A value that is not finite makes the scale of its row NaN, at any place of a vector.
TEST(QuantizeRow, IsNaNIfAValueIsNotFinite) {
  for (const QuantizeCode* code : QuantizeCodes()) {
    QuantizeChoice::for_test = code;
    for (const float value : {std::nanf(""), INFINITY, -INFINITY}) {
      for (const size_t at : {0U, 15U, 16U, 36U}) {
        std::vector<float> x(37, 1.0F);
        x[at] = value;
        std::vector<int8_t> stored(37);
        for (const bool asymmetric : {false, true})
          EXPECT_TRUE(std::isnan(QuantizeRow(x.data(), 37, asymmetric, stored.data()).scale)) << at;
      }
    }
  }
  QuantizeChoice::for_test = nullptr;
}

// The least positive numbers, whose inverse is infinite, and the largest, whose range is.
TEST(QuantizeRow, HoldsAtTheEndsOfFloats) {
  std::vector<int8_t> stored(3);
  for (const float size : {1e-45F, 1e-38F, 3e38F}) {
    const std::vector<float> x = {-size, 0, size};
    for (const bool asymmetric : {false, true}) {
      const RowScale s = QuantizeRow(x.data(), 3, asymmetric, stored.data());
      EXPECT_TRUE(std::isfinite(s.scale));
      for (size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(s.scale * static_cast<float>(stored[i] - s.zero), x[i], std::max(2e-38F, size / 100));
    }
  }
}

}  // namespace
}  // namespace fusebox::math
