// SPDX-License-Identifier: Apache-2.0
// Float matrix products beside plain loops, in every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "plugins/cpu/products/gemm.h"

namespace fusebox::cpu {
namespace {

struct Size {
  int64_t m, n, k;
};

// One less and one more than tiles, blocks of columns (64) and blocks of the depth (768) have.
constexpr Size kSizes[] = {{1, 1, 0},   {1, 1, 1},   {1, 3, 7},   {2, 4, 8},    {3, 5, 9},  {4, 3, 31},
                           {5, 2, 33},  {7, 1, 65},  {3, 65, 17}, {8, 63, 5},   {9, 67, 2}, {1, 130, 769},
                           {4, 7, 768}, {6, 5, 769}, {5, 66, 40}, {3, 4, 1600}, {0, 5, 3},  {5, 0, 3}};

// Matrices with unused elements behind each row, which no product may read or write.
template <class T>
struct Operands {
  explicit Operands(const Size& size) : size(size), lda(size.k + 3), ldb(size.k + 1), ldc(size.n + 2) {
    const auto fill = [](std::vector<T>& matrix, int64_t rows, int64_t columns, int64_t stride, int step) {
      matrix.assign(static_cast<size_t>(rows * stride), std::numeric_limits<T>::quiet_NaN());
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          matrix[static_cast<size_t>(i * stride + j)] = static_cast<T>(((i * 31 + j * step) % 19 - 9) / 7.0);
    };
    fill(a, size.m, size.k, lda, 5);
    fill(b, size.n, size.k, ldb, 11);
    fill(bias, 1, size.n, size.n, 3);
    c.assign(static_cast<size_t>(size.m * ldc), T(77));
  }
  RowProduct<T> product(bool with_bias, Activation activation) {
    return {.a = a.data(),
            .lda = lda,
            .b = b.data(),
            .ldb = ldb,
            .bias = with_bias ? bias.data() : nullptr,
            .c = c.data(),
            .ldc = ldc,
            .m = size.m,
            .n = size.n,
            .k = size.k,
            .activation = activation};
  }
  struct Sum {
    double value, magnitude;  // of all terms
  };
  Sum SumOf(int64_t i, int64_t j, bool with_bias) const {
    Sum sum{with_bias ? bias[static_cast<size_t>(j)] : 0, 1};
    for (int64_t p = 0; p < size.k; ++p) {
      const double term = static_cast<double>(a[static_cast<size_t>(i * lda + p)]) *
                          static_cast<double>(b[static_cast<size_t>(j * ldb + p)]);
      sum.value += term;
      sum.magnitude += std::abs(term);
    }
    return sum;
  }

  Size size;
  int64_t lda, ldb, ldc;
  std::vector<T> a, b, bias, c;
};

template <class T>
void ExpectProduct(const Operands<T>& x, bool with_bias, bool relu) {
  // The bound for any order of both sums.
  const double error =
      2 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (1 + static_cast<double>(x.size.k));
  for (int64_t i = 0; i < x.size.m; ++i) {
    for (int64_t j = 0; j < x.ldc; ++j) {
      const T is = x.c[static_cast<size_t>(i * x.ldc + j)];
      if (j >= x.size.n) {
        ASSERT_EQ(is, T(77)) << "behind row " << i;
        continue;
      }
      const auto [sum, magnitude] = x.SumOf(i, j, with_bias);
      ASSERT_NEAR(is, relu ? std::max(sum, 0.0) : sum, error * magnitude)
          << x.size.m << "x" << x.size.n << "x" << x.size.k << ", element " << i << ", " << j;
    }
  }
}

template <class T>
void MultiplyBy(const DotKernels& code, const RowProduct<T>& product) {
  if constexpr (std::is_same_v<T, float>) code.f32(product);
  else code.f64(product);
}

template <class T>
class RowProducts : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(RowProducts, Floats);

TYPED_TEST(RowProducts, AreThoseOfPlainLoopsInEveryCode) {
  for (size_t code = 0; code < AllDotKernels().size(); ++code) {
    SCOPED_TRACE("instruction set " + std::to_string(code));
    for (const Size& size : kSizes) {
      for (const bool with_bias : {false, true}) {
        for (const bool relu : {false, true}) {
          Operands<TypeParam> x(size);
          MultiplyBy(*AllDotKernels()[code],
                     x.product(with_bias, relu ? Activation::kRelu : Activation::kNone));
          ExpectProduct(x, with_bias, relu);
        }
      }
    }
  }
}

TYPED_TEST(RowProducts, UseTheBestCode) {
  for (const Size& size : kSizes) {
    Operands<TypeParam> best(size);
    Operands<TypeParam> chosen(size);
    MultiplyBy(*AllDotKernels().front(), best.product(true, Activation::kNone));
    Multiply(chosen.product(true, Activation::kNone));
    ASSERT_EQ(best.c, chosen.c);
  }
}

TYPED_TEST(RowProducts, KeepNanOfTheirRow) {
  for (const DotKernels* code : AllDotKernels()) {
    Operands<TypeParam> x({3, 5, 9});
    x.a[static_cast<size_t>(x.lda + 8)] = std::numeric_limits<TypeParam>::quiet_NaN();
    MultiplyBy(*code, x.product(true, Activation::kNone));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j) EXPECT_EQ(std::isnan(x.c[static_cast<size_t>(i * x.ldc + j)]), i == 1);
  }
}

TEST(Transpose, SwapsRowsAndColumnsOfAnySize) {
  for (const int64_t rows : {0, 1, 15, 16, 17, 40}) {
    for (const int64_t columns : {0, 1, 16, 33}) {
      std::vector<int16_t> in(static_cast<size_t>(rows * columns));
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int16_t>(i);
      std::vector<int16_t> out(in.size());
      TransposeMatrix(in.data(), rows, columns, out.data());
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          ASSERT_EQ(out[static_cast<size_t>(j * rows + i)], in[static_cast<size_t>(i * columns + j)]);
    }
  }
}

}  // namespace
}  // namespace fusebox::cpu
