// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "plugins/rnn/cell/hybrid_product.h"

namespace fusebox::rnn {
namespace {

// Every length up to some vectors of the widest code, with the least and the most values among them, rows of
// both signs, and numbers of rows and outputs that fill no tile.
TEST(HybridProduct, IsExactInEveryCode) {
  for (const ByteCode* code : ByteCodes()) {
    for (size_t columns = 0; columns < 150; ++columns) {
      const size_t outputs = columns % 7 * 19 + 1, count = columns % 11;
      const ByteLayout layout{
          .lanes = code->lanes, .outputs = outputs, .columns = columns, .unit = code->unit};
      std::vector<int8_t> weights(outputs * columns), rows(count * columns), packed(layout.bytes());
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
      for (size_t output = 0; output < outputs; ++output)
        math::PackByteRow(layout, output, weights.data() + output * columns, packed.data());
      for (const bool is_unsigned : {false, true}) {
        std::vector<int32_t> sums(count * layout.padded()), start(layout.padded()), of_row(count);
        for (size_t i = 0; i < outputs; ++i)
          start[i] = static_cast<int32_t>(i) - code->signs.Offset(is_unsigned) *
                                                   math::SumOfBytes(weights.data() + i * columns, columns);
        for (size_t i = 0; i < count; ++i) of_row[i] = static_cast<int32_t>(3 * i) - 5;
        const ByteTask task{.rows = rows.data(),
                            .count = count,
                            .stride = columns,
                            .flipped = code->signs.Flips(is_unsigned),
                            .layout = layout,
                            .weights = packed.data(),
                            .start = start.data(),
                            .terms = {{start.data(), of_row.data()}}};
        code->multiply(task, sums.data(), layout.padded(), 0, (layout.panels() + 3) / 4);
        for (size_t row = 0; row < count; ++row) {
          for (size_t i = 0; i < outputs; ++i) {
            int32_t expected = static_cast<int32_t>(i) + start[i] * of_row[row];
            for (size_t k = 0; k < columns; ++k) {
              const int8_t x = rows[row * columns + k];
              expected += weights[i * columns + k] * (is_unsigned ? static_cast<uint8_t>(x) : int{x});
            }
            ASSERT_EQ(sums[row * layout.padded() + i], expected) << columns << " columns, row " << row;
          }
        }
      }
    }
  }
}

// Halves between two steps, values beyond both ends, NaN, and every length up to some vectors of the widest
// code.
TEST(HybridProduct, QuantizesAlikeInEveryCode) {
  const float special[] = {0.5F, -0.5F, 1.5F, -2.5F, 127.5F, -128.5F, 3e5F, -3e5F, std::nanf("")};
  for (const ByteCode* code : ByteCodes()) {
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
  std::vector<int8_t> stored(5, 55);
  const std::vector<float> x = {-1, 0, 0.5F, 2};
  const auto quantize = [&](const std::vector<float>& values, bool asymmetric) {
    return QuantizeHybrid(BestByteCode(), values.data(), 4, asymmetric, stored.data());
  };
  HybridScale s = quantize(x, false);
  EXPECT_EQ(stored, (std::vector<int8_t>{-64, 0, 32, 127, 55}));
  EXPECT_EQ(s.zero, 0);
  EXPECT_FLOAT_EQ(s.scale, 2.0F / 127);
  s = quantize(x, true);
  EXPECT_EQ(s.zero, -43);
  EXPECT_EQ(stored, (std::vector<int8_t>{-128, -43, -1, 127, 55}));
  quantize({0, 0, 0, 0}, true);
  EXPECT_EQ(stored, (std::vector<int8_t>{0, 0, 0, 0, 55}));
}

}  // namespace
}  // namespace fusebox::rnn
