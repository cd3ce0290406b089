// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plugins/rnn/hybrid_product.h"

namespace fusebox::rnn {
namespace {

// Every length up to some vectors of the widest code, with the least and the most values among them.
TEST(HybridProduct, IsExactInEveryCode) {
  for (const PanelCode* code : PanelCodes()) {
    for (size_t columns = 0; columns < 150; ++columns) {
      constexpr size_t kRows = 3;
      std::vector<int8_t> rows(kRows * columns), x(columns);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
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

TEST(HybridProduct, QuantisesToTheRangeOfAVector) {
  std::vector<int8_t> stored(4);
  HybridVector v{stored.data()};
  const std::vector<float> x = {-1, 0, 0.5F, 2};
  v.Quantise(x.data(), 4, false);
  EXPECT_EQ(stored, (std::vector<int8_t>{-64, 0, 32, 127}));
  EXPECT_EQ(v.zero, 0);
  EXPECT_FLOAT_EQ(v.scale, 2.0F / 127);
  v.Quantise(x.data(), 4, true);
  EXPECT_EQ(v.zero, -43);
  EXPECT_EQ(stored, (std::vector<int8_t>{-128, -43, -1, 127}));
  const std::vector<float> none(4, 0);
  v.Quantise(none.data(), 4, true);
  EXPECT_EQ(stored, (std::vector<int8_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace fusebox::rnn
