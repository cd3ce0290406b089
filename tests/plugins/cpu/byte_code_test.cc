// SPDX-License-Identifier: Apache-2.0
// The vector code of 8-bit products of the cpu kernels, in every instruction set of this machine.
#include "plugins/cpu/quantized/byte_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace fusebox::cpu {
namespace {

using math::FixedPoint;

int32_t HalfUp(int32_t x, FixedPoint by) {
  const int64_t wide = std::clamp<int64_t>(int64_t{x} << std::max(by.shift, 0), INT32_MIN, INT32_MAX);
  const int64_t high = (wide * by.value + (int64_t{1} << 30)) >> 31;
  const int32_t right = std::max(-by.shift, 0);
  return static_cast<int32_t>((high + (int64_t{1} << right >> 1)) >> right);
}

TEST(ByteKernels, ScalesAlikeInEveryCode) {
  const std::vector<int32_t> sums = {0,          1,         -1,        63,         64,    65,
                                     -63,        -64,       -65,       12345,      -9876, 1 << 20,
                                     -(1 << 20), INT32_MAX, INT32_MIN, 2147483000, 77777, -5};
  const double scales[] = {1.0 / 128, 0.5, 0.0123, 1, 3.7, 1e-9, 0.999999, 1.0 / 64};
  for (const ByteKernels* code : AllByteKernels()) {
    for (const bool half_up : {false, true}) {
      for (const bool per_channel : {false, true}) {
        std::vector<FixedPoint> by;
        for (size_t i = 0; i < (per_channel ? sums.size() : 1); ++i)
          by.emplace_back(scales[i % std::size(scales)]);
        const ByteScales factors(by, {-3, -120, 100, half_up});
        std::vector<int32_t> bias(sums.size());
        for (size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<int32_t>(i) - 4;
        const ByteResults results{&factors, bias.data()};
        for (size_t count = 0; count <= sums.size(); ++count) {
          std::vector<uint8_t> out(count + 1, 77);
          code->store(results, 0, count, sums.data(), out.data());
          for (size_t i = 0; i < count; ++i) {
            const auto sum =
                static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(bias[i]));
            const FixedPoint scale = by[per_channel ? i : 0];
            const int64_t scaled = half_up ? HalfUp(sum, scale) : scale.Times(sum);
            ASSERT_EQ(static_cast<int8_t>(out[i]), std::clamp<int64_t>(scaled - 3, -120, 100))
                << sum << " * " << scale.value << " 2^" << scale.shift << (half_up ? " up" : " away");
          }
          ASSERT_EQ(out[count], 77);
        }
      }
    }
  }
}

// Scales below a half and small zero points take another way than the others.
TEST(ByteKernels, RoundsTiesAlikeInEveryCode) {
  const std::vector<double> small = {0.25, 1.0 / 128, 0.0123, 1.0 / 64, 0.3, 1e-6, 1.0 / (1 << 20), 0.4999};
  std::vector<double> large = small;
  large[3] = 0.5;
  std::vector<int32_t> sums;
  for (int32_t i = -3000; i <= 3000; ++i) sums.push_back(i);
  for (int32_t i = -3000; i <= 3000; ++i) sums.push_back(i * 524288);
  for (const int32_t i : {INT32_MIN, INT32_MIN + 1, INT32_MAX - 1, INT32_MAX, 1 << 30, -(1 << 30)})
    sums.push_back(i);
  while (sums.size() % 32 != 0) sums.push_back(0);
  for (const ByteKernels* code : AllByteKernels()) {
    for (const auto& scales : {small, large}) {
      for (const bool half_up : {false, true}) {
        for (const int32_t zero : {0, -128, 1024, 1025}) {
          std::vector<FixedPoint> by;
          for (size_t i = 0; i < 32; ++i) by.emplace_back(scales[i * 5 % scales.size()]);
          const ByteScales factors(by, {zero, -128, 127, half_up});
          std::vector<uint8_t> out(32);
          for (size_t at = 0; at < sums.size(); at += 32) {
            code->store({&factors, nullptr}, 0, 32, sums.data() + at, out.data());
            for (size_t i = 0; i < 32; ++i) {
              const int64_t scaled = half_up ? HalfUp(sums[at + i], by[i]) : by[i].Times(sums[at + i]);
              ASSERT_EQ(static_cast<int8_t>(out[i]), std::clamp<int64_t>(scaled + zero, -128, 127))
                  << sums[at + i] << " * " << by[i].value << " 2^" << by[i].shift << " + " << zero
                  << (half_up ? " up" : " away");
            }
          }
        }
      }
    }
  }
}

// Two roundings of each result, as plain code has without contraction.
TEST(ByteKernels, ScalesToFloatsAlikeInEveryCode) {
  constexpr size_t kFirst = 3;
  constexpr size_t kCount = 40;
  std::vector<int32_t> sums;
  std::vector<float> scales;
  std::vector<float> bias;
  for (size_t i = 0; i < kFirst + kCount; ++i) {
    sums.push_back(static_cast<int32_t>(i * 2654435761U) >> (i % 24));
    scales.push_back(0.013F / static_cast<float>(i + 1));
    bias.push_back(static_cast<float>(i) * 0.37F - 5);
  }
  for (const ByteKernels* code : AllByteKernels()) {
    for (const bool per_channel : {false, true}) {
      for (const bool biased : {false, true}) {
        const FloatResults results{scales.data(), per_channel, biased ? bias.data() : nullptr, -1e4F, 3e4F};
        for (size_t count = 0; count <= kCount; ++count) {
          std::vector<float> out(count + 1, 77);
          code->store_floats(results, 0.7F, kFirst, count, sums.data(), out.data());
          for (size_t i = 0; i < count; ++i) {
            const volatile float by = 0.7F * scales[per_channel ? kFirst + i : 0];
            const volatile float product = static_cast<float>(sums[i]) * by;
            const float y = product + (biased ? bias[kFirst + i] : 0.0F);
            ASSERT_EQ(out[i], std::clamp(y, -1e4F, 3e4F)) << i << " of " << count;
          }
          ASSERT_EQ(out[count], 77);
        }
      }
    }
  }
}

// Rows as the code reads them; the original ones lie `stride` apart.
std::vector<int8_t> RowsFor(const ByteKernels& code, const std::vector<int8_t>& rows, size_t count,
                            size_t columns, bool is_unsigned) {
  if (!code.signs.Flips(is_unsigned)) return rows;
  const size_t stride = columns + 3;
  std::vector<int8_t> apart(count * stride), flipped(count * columns + 1, 77);
  for (size_t i = 0; i < count; ++i)
    std::copy_n(rows.data() + i * columns, columns, apart.data() + i * stride);
  code.flip(apart.data(), count, stride, columns, flipped.data());
  EXPECT_EQ(flipped.back(), 77);
  flipped.pop_back();
  std::vector<int8_t> in_place = rows;
  code.flip(in_place.data(), count, columns, columns, in_place.data());
  EXPECT_EQ(in_place, flipped);
  return flipped;
}

// Products of every length up to some vectors, of as many outputs and rows as fill no tile.
TEST(ByteKernels, MultipliesAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (size_t columns = 0; columns < 140; ++columns) {
      const size_t outputs = columns % 7 * 23 + 1, count = columns % 9;
      const ByteLayout layout{.lanes = code->lanes, .n = outputs, .k = columns, .unit = code->unit};
      std::vector<int8_t> weights(outputs * columns), rows(count * columns), packed(layout.bytes());
      for (size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<int8_t>(i % 7 == 0 ? -128 : i * 37);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
      for (size_t i = 0; i < outputs; ++i)
        math::PackByteRow(layout, i, weights.data() + i * columns, packed.data());
      const ByteScales scale({FixedPoint(0.003)}, {1, -128, 127, true});
      for (const bool is_unsigned : {false, true}) {
        std::vector<int32_t> start(layout.padded()), totals(count);
        for (size_t i = 0; i < outputs; ++i)
          start[i] =
              -code->signs.Offset(is_unsigned) * math::SumOfBytes(weights.data() + i * columns, columns);
        const ByteResults results{&scale, nullptr};
        std::vector<uint8_t> out(count * outputs + 1, 77);
        const std::vector<int8_t> as_read = RowsFor(*code, rows, count, columns, is_unsigned);
        code->multiply_and_store({.product = {.rows = as_read.data(),
                                              .count = count,
                                              .stride = columns,
                                              .layout = layout,
                                              .weights = packed.data(),
                                              .start = start.data()},
                                  .results = &results,
                                  .first_channel = 0,
                                  .out = out.data(),
                                  .out_stride = outputs},
                                 0, (layout.panels() + 3) / 4);
        code->sum_rows(rows.data(), count, columns, columns, is_unsigned, 9, totals.data());
        for (size_t row = 0; row < count; ++row) {
          int32_t total = -9;
          for (size_t i = 0; i < outputs; ++i) {
            int32_t sum = 0;
            for (size_t k = 0; k < columns; ++k) {
              const int8_t byte = rows[row * columns + k];
              const int32_t x = is_unsigned ? static_cast<uint8_t>(byte) : byte;
              sum += weights[i * columns + k] * x;
              if (i == 0) total += x;
            }
            const int32_t expected = std::clamp(HalfUp(sum, FixedPoint(0.003)) + 1, -128, 127);
            ASSERT_EQ(static_cast<int8_t>(out[row * outputs + i]), expected) << columns << " columns";
          }
          ASSERT_EQ(totals[row], total);
        }
        ASSERT_EQ(out[count * outputs], 77);
      }
    }
  }
}

// The packed weights are 4-bit numbers plus 8.
TEST(ByteKernels, MultipliesHalvesAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (size_t columns = 1; columns < 80; ++columns) {
      const size_t outputs = columns % 7 * 23 + 1, count = columns % 9, bytes = (columns + 1) / 2;
      const ByteLayout layout{code->lanes, outputs, columns, true};
      std::vector<uint8_t> weights(outputs * bytes);
      for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<uint8_t>(i * 151 + 7);
      const auto weight = [&](size_t output, size_t k) {
        return static_cast<int32_t>((weights[output * bytes + k / 2] >> k % 2 * 4 & 0xF) ^ 8);
      };
      std::vector<int8_t> rows(count * columns), packed(layout.bytes());
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int8_t>(i % 5 == 0 ? -128 : i * 91 + 3);
      std::vector<int32_t> start(layout.padded());
      for (size_t i = 0; i < outputs; ++i) {
        const int32_t sum = math::PackInt4Row(layout, i, weights.data() + i * bytes, packed.data());
        int32_t expected = 0;
        for (size_t k = 0; k < columns; ++k) expected += weight(i, k);
        ASSERT_EQ(sum, expected);
        start[i] = -code->signs.Offset(false) * sum;
      }
      const size_t groups = layout.panels() / math::kBytePanels, width = layout.padded();
      std::vector<int32_t> out(count * width, 77);
      const std::vector<int8_t> as_read = RowsFor(*code, rows, count, columns, false);
      code->multiply({.rows = as_read.data(),
                      .count = count,
                      .stride = columns,
                      .layout = layout,
                      .weights = packed.data(),
                      .start = start.data()},
                     out.data(), width, 0, groups);
      for (size_t row = 0; row < count; ++row) {
        for (size_t i = 0; i < outputs; ++i) {
          int32_t sum = 0;
          for (size_t k = 0; k < columns; ++k) sum += weight(i, k) * rows[row * columns + k];
          ASSERT_EQ(out[row * width + i], sum) << columns << " columns, output " << i;
        }
      }
    }
  }
}

int32_t BinaryOf(const ByteBinary& b, int32_t x, int32_t y) {
  x -= b.x_zero, y -= b.y_zero;
  if (b.op == ByteBinary::Op::kMul) return b.z_scale.Times(x * y);
  const int32_t left = b.x_scale.Times(x * (1 << b.shift)), right = b.y_scale.Times(y * (1 << b.shift));
  const int32_t d = left - right;
  return b.z_scale.Times(b.op == ByteBinary::Op::kAdd   ? left + right
                         : b.op == ByteBinary::Op::kSub ? d
                                                        : d * d);
}

TEST(ByteKernels, CombinesAlikeInEveryCode) {
  using Op = ByteBinary::Op;
  constexpr size_t kCount = 256 * 3 + 5;
  std::vector<uint8_t> x(kCount), y(kCount);
  for (size_t i = 0; i < kCount; ++i)
    x[i] = static_cast<uint8_t>(i), y[i] = static_cast<uint8_t>(i * 77 + i / 256);
  for (const ByteKernels* code : AllByteKernels()) {
    for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kSquaredDifference}) {
      for (const bool is_signed : {false, true}) {
        const bool square = op == Op::kSquaredDifference;
        const ByteBinary b{op,
                           is_signed,
                           is_signed ? -3 : 120,
                           is_signed ? 44 : 131,
                           square ? 7 : 20,
                           FixedPoint(0.5),
                           FixedPoint(0.173),
                           FixedPoint(op == Op::kMul ? 0.0071
                                      : square       ? 0.002
                                                     : 1.9e-6),
                           is_signed ? 5 : 125,
                           is_signed ? -120 : 3,
                           is_signed ? 119 : 250};
        const auto number = [&](uint8_t v) {
          return is_signed ? int32_t{static_cast<int8_t>(v)} : int32_t{v};
        };
        for (const int64_t step : {0, 1}) {
          for (const size_t count : {kCount, size_t{3}, size_t{0}}) {
            std::vector<uint8_t> z(count + 1, 77);
            code->binary(b, x.data(), 1, y.data() + 1, step, z.data(), count - (count == kCount));
            for (size_t i = 0; i < count - (count == kCount); ++i) {
              const int32_t value = BinaryOf(b, number(x[i]), number(y[1 + (step ? i : 0)])) + b.zero;
              ASSERT_EQ(number(z[i]), std::clamp(value, b.lowest, b.highest)) << number(x[i]);
            }
            ASSERT_EQ(z[count], 77);
          }
        }
      }
    }
  }
}

// Values of all sizes, and the floats next to the middle of two results.
std::vector<float> ValuesToQuantize(float scale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {0,      -0.0F, kInfinity, -kInfinity,  std::nanf(""), 1e30F,
                          -1e30F, 0.5F,  -0.5F,     0.49999997F, 1e-40F,        -1e-40F};
  for (int i = -600; i < 600; ++i) {
    x.push_back(static_cast<float>(i) * 0.25F);
    const auto middle = static_cast<float>((i + 0.5) * scale);
    for (const float v : {middle, std::nextafter(middle, kInfinity), std::nextafter(middle, -kInfinity),
                          middle * 1.0001F, static_cast<float>(i * 1.37 * scale)})
      x.push_back(v);
  }
  return x;
}

TEST(ByteKernels, QuantizesAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (const float scale : {1.0F, 0.5F, 0.3F, 1e-20F, 1e-39F, 1e35F}) {
      const std::vector<float> x = ValuesToQuantize(scale);
      for (const int32_t zero : {-7, 0, 130, 5000}) {
        for (const bool is_signed : {true, false}) {
          std::vector<uint8_t> q(x.size() + 1, 77);
          code->quantize(x.data(), x.size(), scale, zero, is_signed, q.data());
          for (size_t i = 0; i < x.size(); ++i) {
            const double nearest = std::round(double{x[i]} / scale) + zero;
            const double whole = std::isnan(nearest) ? zero : nearest;
            const double low = is_signed ? -128 : 0;
            const double inside = std::clamp(whole, low, low + 255);
            if (std::isnan(nearest) && inside != zero) continue;  // no result stands for it
            ASSERT_EQ(is_signed ? static_cast<int8_t>(q[i]) : q[i], inside) << x[i] << " / " << scale;
          }
          ASSERT_EQ(q[x.size()], 77);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fusebox::cpu
