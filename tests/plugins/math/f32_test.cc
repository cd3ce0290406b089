// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/gemm/f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "plugins/math/gemm/run.h"

namespace fusebox::math {
namespace {

// A product with its operands. Rows of A are `segments` parts that do not follow each other in memory.
struct Case {
  size_t m;
  size_t n;
  size_t k;
  size_t segments = 1;
  bool starts = true;
  bool starts_per_row = false;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

float Value(size_t i) { return std::sin(static_cast<float>(i % 1009 * (i % 1013))) * 2; }

std::vector<float> Values(size_t n, size_t first) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = Value(first + i);
  return values;
}

struct Sum {
  double value;
  double magnitude;  // the sum of the magnitudes of what is added
};

Sum Expected(const Case& c, size_t i, size_t j, const std::vector<float>& a, const std::vector<float>& b,
             const std::vector<float>& start) {
  Sum sum{c.starts ? double{start[c.starts_per_row ? i * c.n + j : j]} : 0, 0};
  sum.magnitude = std::abs(sum.value);
  for (size_t k = 0; k < c.k; ++k) {
    const double product = double{a[i * c.k + k]} * double{b[j * c.k + k]};
    sum.value += product;
    sum.magnitude += std::abs(product);
  }
  return {std::clamp(sum.value, double{c.low}, double{c.high}), sum.magnitude};
}

void ExpectProduct(const F32Kernels& code, const Case& c) {
  SCOPED_TRACE(::testing::Message() << c.m << " x " << c.n << " x " << c.k << " in " << c.segments
                                    << " parts, " << code.lanes << " lanes");
  const std::vector<float> a = Values(c.m * c.k, 1);
  const std::vector<float> b = Values(c.n * c.k, 2000);
  const std::vector<float> start = Values(c.starts_per_row ? c.m * c.n : c.n, 77);
  const F32Layout layout{code.lanes, c.n, c.k};
  std::vector<float> packed(layout.elements(), std::nanf(""));
  PackF32(layout, b.data(), packed.data());
  const size_t segment = c.k / c.segments;
  const size_t gap = 2;  // between segments, which nothing may read
  std::vector<float> parts(c.m * c.segments * (segment + gap), std::nanf(""));
  for (size_t i = 0; i < c.m * c.segments; ++i)
    std::copy_n(a.begin() + static_cast<ptrdiff_t>(i * segment), segment,
                parts.begin() + static_cast<ptrdiff_t>(i * (segment + gap)));
  const size_t ldc = c.n + 3;
  std::vector<float> out(c.m * ldc + 1, 55);
  std::vector<const float*> from;
  std::vector<float*> to;
  for (size_t i = 0; i < c.m; ++i) {
    from.push_back(parts.data() + i * c.segments * (segment + gap));
    to.push_back(out.data() + i * ldc);
  }
  std::vector<ptrdiff_t> offsets;
  for (size_t s = 0; s < c.segments; ++s) offsets.push_back(static_cast<ptrdiff_t>(s * (segment + gap)));
  code.multiply({.layout = layout,
                 .weights = packed.data(),
                 .start = c.starts ? start.data() : nullptr,
                 .start_stride = c.starts_per_row ? c.n : 0,
                 .low = c.low,
                 .high = c.high},
                {from.data(), to.data(), c.m, offsets.data(), c.segments, segment}, 0, layout.groups());
  for (size_t i = 0; i < c.m; ++i) {
    for (size_t j = 0; j < c.n; ++j) {
      const Sum sum = Expected(c, i, j, a, b, start);
      const double bound = 6e-8 * static_cast<double>(c.k + 2) * sum.magnitude;  // of one rounding a product
      ASSERT_NEAR(double{out[i * ldc + j]}, sum.value, bound) << i << ", " << j;
    }
    for (size_t j = c.n; j < ldc; ++j) ASSERT_EQ(out[i * ldc + j], 55) << "beyond the row";
  }
}

// Every number of panels of a group and of rows of a tile, one more and one less.
TEST(F32Gemm, IsRightForEveryTile) {
  for (const F32Kernels* code : AllF32Kernels()) {
    for (size_t panels = 1; panels <= 5; ++panels) {
      for (const size_t n : {panels * code->lanes - 1, panels * code->lanes, panels * code->lanes + 1})
        for (size_t m = 1; m < 19; ++m) ExpectProduct(*code, {.m = m, .n = n, .k = 5});
    }
  }
}

// A depth in several parts of a cache, of one segment and of several, which may end inside of a part.
TEST(F32Gemm, IsRightForDeepSums) {
  for (const F32Kernels* code : AllF32Kernels()) {
    for (const size_t k : {1023U, 1024U, 1025U, 2500U}) ExpectProduct(*code, {.m = 9, .n = 20, .k = k});
    for (const size_t segments : {3U, 5U}) {
      ExpectProduct(*code, {.m = 9, .n = 20, .k = 900 * segments, .segments = segments});
      ExpectProduct(*code, {.m = 9, .n = 20, .k = 400 * segments, .segments = segments});
      ExpectProduct(*code, {.m = 9, .n = 20, .k = 3 * segments, .segments = segments});
    }
  }
}

TEST(F32Gemm, StartsAndClamps) {
  for (const F32Kernels* code : AllF32Kernels()) {
    for (const size_t k : {0U, 1U, 7U, 1500U}) {
      ExpectProduct(*code, {.m = 8, .n = 33, .k = k, .starts = false});
      ExpectProduct(*code, {.m = 8, .n = 33, .k = k, .starts_per_row = true});
      ExpectProduct(*code, {.m = 8, .n = 33, .k = k, .low = 0, .high = 1});
    }
  }
}

// A row has the same bits alone, among others, and in any group of outputs.
TEST(F32Gemm, DoesNotDependOnTheTiling) {
  for (const F32Kernels* code : AllF32Kernels()) {
    const size_t n = 5 * code->lanes + 3;
    const size_t k = 1300;
    const F32Layout layout{code->lanes, n, k};
    const std::vector<float> a = Values(13 * k, 5);
    std::vector<float> packed(layout.elements());
    PackF32(layout, Values(n * k, 9).data(), packed.data());
    F32Choice::for_test = code;
    std::vector<float> all(13 * n);
    std::vector<float> one(n);
    F32Product product{
        MatrixRows(a.data(), 13, k, k), {.layout = layout, .weights = packed.data()}, all.data(), n};
    Multiply(product, 0, layout.groups());
    for (size_t row = 0; row < 13; ++row) {
      product.a = MatrixRows(a.data() + row * k, 1, k, k);
      product.c = one.data();
      for (size_t group = 0; group < layout.groups(); ++group) Multiply(product, group, group + 1);
      EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + static_cast<ptrdiff_t>(row * n))) << row;
    }
  }
  F32Choice::for_test = nullptr;
}

TEST(F32Gemm, PassesNaNThroughClamps) {
  for (const F32Kernels* code : AllF32Kernels()) {
    const F32Layout layout{code->lanes, 3, 2};
    std::vector<float> packed(layout.elements());
    PackF32(layout, std::vector<float>{1, 1, 1, 1, 1, 1}.data(), packed.data());
    const std::vector<float> a = {1, std::nanf("")};
    const float* const row = a.data();
    std::vector<float> out(3);
    float* const to = out.data();
    const ptrdiff_t beginning = 0;
    code->multiply({.layout = layout, .weights = packed.data(), .low = 0, .high = 6},
                   {&row, &to, 1, &beginning, 1, 2}, 0, 1);
    for (const float value : out) EXPECT_TRUE(std::isnan(value));
  }
}

TEST(F32Gemm, PacksTheTransposedMatrixAndRowsAlike) {
  const F32Layout layout{8, 37, 11};
  const std::vector<float> b = Values(layout.n * layout.k, 3);
  std::vector<float> transposed(b.size());
  for (size_t n = 0; n < layout.n; ++n)
    for (size_t k = 0; k < layout.k; ++k) transposed[k * layout.n + n] = b[n * layout.k + k];
  std::vector<float> packed(layout.elements(), 1);
  std::vector<float> of_columns(layout.elements(), 2);
  std::vector<float> of_rows(layout.elements());
  PackF32(layout, b.data(), packed.data());
  PackF32Transposed(layout, transposed.data(), of_columns.data());
  for (size_t n = 0; n < layout.n; ++n) PackF32Row(layout, n, b.data() + n * layout.k, of_rows.data());
  EXPECT_EQ(packed, of_columns);
  EXPECT_EQ(packed, of_rows);
}

}  // namespace
}  // namespace fusebox::math
