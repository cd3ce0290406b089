// SPDX-License-Identifier: Apache-2.0
// Products of bytes beside plain loops, in every instruction set of this machine.
#include "plugins/math/gemm/bytes.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/plugins/math/codes.h"

namespace fusebox::math {
namespace {

// Rows and weights of bytes, the least one among them, with numbers that fill no tile and no panel.
struct Product {
  explicit Product(size_t columns)
      : columns(columns), outputs(columns % 7 * 23 + 1), count(columns % 11), rows(count * columns) {
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
  }
  int32_t Row(size_t row, size_t k, bool is_unsigned) const {
    const int8_t byte = rows[row * columns + k];
    return is_unsigned ? static_cast<uint8_t>(byte) : byte;
  }

  size_t columns, outputs, count;
  std::vector<int8_t> rows;
};

TEST(Bytes, AreMultipliedAlikeInEveryCode) {
  for (const MathCode* code : MathCodes()) {
    for (size_t columns = 0; columns < 150; ++columns) {
      const Product product(columns);
      const ByteLayout layout{.lanes = code->lanes, .n = product.outputs, .k = columns, .unit = code->unit};
      std::vector<int8_t> weights(product.outputs * columns);
      std::vector<int8_t> packed(layout.bytes());
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
      for (size_t i = 0; i < product.outputs; ++i)
        PackByteRow(layout, i, weights.data() + i * columns, packed.data());
      for (const bool is_unsigned : {false, true}) {
        std::vector<int32_t> start(layout.padded());
        for (size_t i = 0; i < product.outputs; ++i)
          start[i] = -code->signs.Offset(is_unsigned) * SumOfBytes(weights.data() + i * columns, columns);
        std::vector<int32_t> sums(product.count * layout.padded(), 77);
        code->multiply_bytes({.rows = product.rows.data(),
                              .count = product.count,
                              .stride = columns,
                              .flipped = code->signs.Flips(is_unsigned),
                              .layout = layout,
                              .weights = packed.data(),
                              .start = start.data()},
                             sums.data());
        for (size_t row = 0; row < product.count; ++row) {
          for (size_t i = 0; i < product.outputs; ++i) {
            int32_t expected = 0;
            for (size_t k = 0; k < columns; ++k)
              expected += weights[i * columns + k] * product.Row(row, k, is_unsigned);
            ASSERT_EQ(sums[row * layout.padded() + i], expected)
                << code->lanes << " lanes, " << columns << " columns, row " << row << ", output " << i;
          }
        }
      }
    }
  }
}

TEST(Bytes, StartFromTermsOfRowAndOutput) {
  for (const MathCode* code : MathCodes()) {
    const Product product(20);
    const ByteLayout layout{.lanes = code->lanes, .n = product.outputs, .k = 0, .unit = code->unit};
    std::vector<int32_t> of_output(layout.padded());
    std::vector<int32_t> of_row(product.count);
    for (size_t i = 0; i < of_output.size(); ++i) of_output[i] = 1000 - static_cast<int32_t>(i) * 7;
    for (size_t i = 0; i < of_row.size(); ++i) of_row[i] = static_cast<int32_t>(i) - 4;
    std::vector<int32_t> sums(product.count * layout.padded(), 77);
    code->multiply_bytes({.rows = product.rows.data(),
                          .count = product.count,
                          .stride = product.columns,
                          .flipped = false,
                          .layout = layout,
                          .weights = product.rows.data(),
                          .start = of_output.data(),
                          .terms = {{of_output.data(), of_row.data()}, {of_output.data(), of_row.data()}}},
                         sums.data());
    for (size_t row = 0; row < product.count; ++row)
      for (size_t i = 0; i < product.outputs; ++i)
        ASSERT_EQ(sums[row * layout.padded() + i], of_output[i] * (1 + 2 * of_row[row]));
  }
}

// The packed weights are 4-bit numbers plus 8.
TEST(Bytes, AreMultipliedByHalvesAlikeInEveryCode) {
  for (const MathCode* code : MathCodes()) {
    for (size_t columns = 1; columns < 90; ++columns) {
      const Product product(columns);
      const size_t bytes = (columns + 1) / 2;
      const ByteLayout layout{.lanes = code->lanes, .n = product.outputs, .k = columns, .int4 = true};
      std::vector<uint8_t> weights(product.outputs * bytes);
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i * 151 + 7);
      const auto weight = [&](size_t output, size_t k) {
        return static_cast<int32_t>((weights[output * bytes + k / 2] >> k % 2 * 4 & 0xF) ^ 8);
      };
      std::vector<int8_t> packed(layout.bytes());
      std::vector<int32_t> start(layout.padded());
      for (size_t i = 0; i < product.outputs; ++i) {
        const int32_t sum = PackInt4Row(layout, i, weights.data() + i * bytes, packed.data());
        start[i] = -code->signs.Offset(false) * sum;
      }
      std::vector<int32_t> sums(product.count * layout.padded(), 77);
      code->multiply_halves({.rows = product.rows.data(),
                             .count = product.count,
                             .stride = columns,
                             .flipped = code->signs.Flips(false),
                             .layout = layout,
                             .weights = packed.data(),
                             .start = start.data()},
                            sums.data());
      for (size_t row = 0; row < product.count; ++row) {
        for (size_t i = 0; i < product.outputs; ++i) {
          int32_t expected = 0;
          for (size_t k = 0; k < columns; ++k) expected += weight(i, k) * product.Row(row, k, false);
          ASSERT_EQ(sums[row * layout.padded() + i], expected)
              << code->lanes << " lanes, " << columns << " columns, row " << row << ", output " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fusebox::math
