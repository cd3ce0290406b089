// SPDX-License-Identifier: Apache-2.0
// Integer matrix products beside plain loops: results are exact.
#include "plugins/cpu/products/integer_gemm.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusebox::cpu {
namespace {

struct IntegerSize {
  int64_t m, n, k;
};

// One less and one more than tiles (4 columns), and than the depths that 32-bit sums hold (256, 8192).
constexpr IntegerSize kIntegerSizes[] = {{1, 1, 0},   {1, 1, 1},    {1, 4, 7},   {2, 3, 8},
                                         {3, 5, 17},  {5, 9, 33},   {2, 7, 255}, {3, 4, 256},
                                         {1, 5, 257}, {2, 5, 8193}, {0, 5, 3},   {5, 0, 3}};

// Numbers of all magnitudes up to `most`, the extremes among them.
std::vector<int16_t> Numbers(int64_t rows, int64_t stride, int32_t least, int32_t most, int32_t seed) {
  std::vector<int16_t> numbers(static_cast<size_t>(rows * stride));
  const int32_t width = most - least + 1;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto mixed =
        static_cast<int32_t>((i * 7919 + static_cast<size_t>(seed)) % static_cast<size_t>(width));
    numbers[i] = static_cast<int16_t>(i % 5 == 0 ? most : i % 7 == 0 ? least : least + mixed);
  }
  return numbers;
}

template <class Sum>
void ExpectExact(const IntegerSize& size, int32_t most_a, int32_t most_b, bool wide) {
  const int64_t lda = size.k + 1;
  const int64_t ldb = size.k + 2;
  const int64_t ldc = size.n + 1;
  const auto a = Numbers(size.m, lda, most_a == 32767 ? -32768 : -most_a, most_a, 3);
  const auto b = Numbers(size.n, ldb, most_b == 32767 ? -32768 : -most_b, most_b, 11);
  std::vector<Sum> c(static_cast<size_t>(size.m * ldc), 77);
  Multiply(IntegerProduct<Sum>{.a = a.data(),
                               .lda = lda,
                               .b = b.data(),
                               .ldb = ldb,
                               .c = c.data(),
                               .ldc = ldc,
                               .m = size.m,
                               .n = size.n,
                               .k = size.k,
                               .wide = wide});
  for (int64_t i = 0; i < size.m; ++i) {
    for (int64_t j = 0; j < size.n; ++j) {
      int64_t sum = 0;
      for (int64_t p = 0; p < size.k; ++p)
        sum += int64_t{a[static_cast<size_t>(i * lda + p)]} * b[static_cast<size_t>(j * ldb + p)];
      ASSERT_EQ(c[static_cast<size_t>(i * ldc + j)], static_cast<Sum>(sum))
          << size.m << "x" << size.n << "x" << size.k << ", element " << i << ", " << j;
    }
    ASSERT_EQ(c[static_cast<size_t>(i * ldc + size.n)], 77) << "behind row " << i;
  }
}

TEST(IntegerProduct, OfBytesIsExact) {
  for (const IntegerSize& size : kIntegerSizes) ExpectExact<int32_t>(size, 255, 255, false);
}

TEST(IntegerProduct, WrapsAround) {
  const std::vector<int16_t> most(40000, 255);
  int32_t sum = 77;
  Multiply(IntegerProduct<int32_t>{.a = most.data(),
                                   .lda = 0,
                                   .b = most.data(),
                                   .ldb = 0,
                                   .c = &sum,
                                   .ldc = 1,
                                   .m = 1,
                                   .n = 1,
                                   .k = 40000});
  EXPECT_EQ(sum, static_cast<int32_t>(int64_t{255} * 255 * 40000));
}

TEST(IntegerProduct, OfWordsAndBytesIsExact) {
  for (const IntegerSize& size : kIntegerSizes) ExpectExact<int64_t>(size, 32767, 255, false);
}

TEST(IntegerProduct, OfWordsIsExact) {
  for (const IntegerSize& size : kIntegerSizes) ExpectExact<int64_t>(size, 32767, 32767, true);
}

}  // namespace
}  // namespace fusebox::cpu
