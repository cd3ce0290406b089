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
  for (const ByteKernels* code : AllByteKernels()) {
    for (size_t columns = 0; columns < 150; ++columns) {
      const size_t outputs = columns % 7 * 19 + 1, count = columns % 11;
      const ByteLayout layout{.lanes = code->lanes, .n = outputs, .k = columns, .unit = code->unit};
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

}  // namespace
}  // namespace fusebox::rnn
