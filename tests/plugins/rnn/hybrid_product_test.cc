// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "plugins/rnn/cell/hybrid_product.h"

namespace fusebox::rnn {
namespace {

// Every length up to some vectors of the widest code, with the least and the most values among them.
TEST(HybridProduct, IsExactInEveryCode) {
  for (const PanelCode* code : PanelCodes()) {
    for (size_t columns = 0; columns < 150; ++columns) {
      constexpr size_t kRows = 11;
      std::vector<int8_t> rows(kRows * columns), x(RoundUp(columns, kByteBlock));
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
      for (size_t i = 0; i < columns; ++i) x[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
      int32_t sums[kRows];
      code->dots(rows.data(), kRows, columns, x.data(), sums);
      for (size_t row = 0; row < kRows; ++row) {
        int32_t expected = 0;
        for (size_t k = 0; k < columns; ++k) expected += rows[row * columns + k] * x[k];
        EXPECT_EQ(sums[row], expected) << columns << " columns, row " << row;
      }
    }
  }
}

// Halves between two steps, values beyond both ends, NaN, and every length up to some vectors of the widest
// code.
TEST(HybridProduct, QuantizesAlikeInEveryCode) {
  const float special[] = {0.5F, -0.5F, 1.5F, -2.5F, 127.5F, -128.5F, 3e5F, -3e5F, std::nanf("")};
  for (const PanelCode* code : PanelCodes()) {
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
      code->range(x.data(), n, &low, &high);
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

TEST(HybridProduct, QuantizesToTheRangeOfAVector) {
  std::vector<int8_t> memory(HybridVector::Bytes(4), 55);
  ScratchReader scratch(reinterpret_cast<std::byte*>(memory.data()));
  HybridVector v(scratch, 4);
  const std::vector<float> x = {-1, 0, 0.5F, 2};
  const auto stored = [&] { return std::vector<int8_t>(memory.begin(), memory.begin() + 5); };
  v.Quantize(x.data(), 4, false);
  EXPECT_EQ(stored(), (std::vector<int8_t>{-64, 0, 32, 127, 0}));
  EXPECT_EQ(v.zero, 0);
  EXPECT_FLOAT_EQ(v.scale, 2.0F / 127);
  v.Quantize(x.data(), 4, true);
  EXPECT_EQ(v.zero, -43);
  EXPECT_EQ(stored(), (std::vector<int8_t>{-128, -43, -1, 127, 0}));
  const std::vector<float> none(4, 0);
  v.Quantize(none.data(), 4, true);
  EXPECT_EQ(stored(), (std::vector<int8_t>(5, 0)));
}

}  // namespace
}  // namespace fusebox::rnn
