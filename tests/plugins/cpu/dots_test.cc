// SPDX-License-Identifier: Apache-2.0
// Float matrix products beside plain loops, in every instruction set of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "plugins/cpu/products/dots.h"

namespace fusebox::cpu {
namespace {

struct Size {
  int64_t m, n, segments, segment;
};

// One less and one more than tiles, vectors, tasks (64 outputs, 128 rows) and the cache's part have.
constexpr Size kSizes[] = {{1, 1, 1, 0},   {1, 1, 1, 1},   {1, 3, 1, 7},     {2, 4, 2, 4},   {3, 5, 3, 3},
                           {4, 3, 1, 31},  {5, 2, 3, 11},  {7, 1, 13, 5},    {3, 65, 1, 17}, {8, 63, 5, 1},
                           {9, 67, 1, 2},  {4, 7, 9, 16},  {1, 130, 1, 769}, {6, 5, 3, 257}, {5, 66, 5, 8},
                           {3, 4, 2, 800}, {131, 3, 2, 9}, {2, 9, 1, 12000}, {0, 5, 1, 3},   {5, 0, 1, 3}};

// Unused elements lie behind each segment of a row and behind each result, which no product may read or
// write.
template <class T>
struct Operands {
  explicit Operands(const Size& size)
      : size(size), k(size.segments * size.segment), lda(size.segment + 3), ldc(size.n + 2) {
    const auto fill = [](std::vector<T>& matrix, int64_t rows, int64_t columns, int64_t stride, int step) {
      matrix.assign(static_cast<size_t>(rows * stride), std::numeric_limits<T>::quiet_NaN());
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
          matrix[static_cast<size_t>(i * stride + j)] = static_cast<T>(((i * 31 + j * step) % 19 - 9) / 7.0);
    };
    fill(a, size.m * size.segments, size.segment, lda, 5);
    fill(b, size.n, k, k, 11);
    fill(bias, 1, size.n, size.n, 3);
    c.assign(static_cast<size_t>(size.m * ldc), T(77));
    for (int64_t i = 0; i < size.m; ++i) {
      from.push_back(a.data() + i * size.segments * lda);
      to.push_back(c.data() + i * ldc);
    }
    for (int64_t s = 0; s < size.segments; ++s) offsets.push_back(s * lda);
  }
  DotTask<T> task(bool with_bias, Activation activation) const {
    return {.b = b.data(), .n = size.n, .bias = with_bias ? bias.data() : nullptr, .activation = activation};
  }
  math::Rows<T> rows() const {
    return {from.data(),
            to.data(),
            static_cast<size_t>(size.m),
            offsets.data(),
            static_cast<size_t>(size.segments),
            static_cast<size_t>(size.segment)};
  }
  T at(int64_t row, int64_t p) const {
    return a[static_cast<size_t>((row * size.segments + p / size.segment) * lda + p % size.segment)];
  }
  struct Sum {
    double value, magnitude;  // of all terms
  };
  Sum SumOf(int64_t i, int64_t j, bool with_bias) const {
    Sum sum{with_bias ? bias[static_cast<size_t>(j)] : 0, 1};
    for (int64_t p = 0; p < k; ++p) {
      const double term =
          static_cast<double>(at(i, p)) * static_cast<double>(b[static_cast<size_t>(j * k + p)]);
      sum.value += term;
      sum.magnitude += std::abs(term);
    }
    return sum;
  }

  Size size;
  int64_t k, lda, ldc;
  std::vector<T> a, b, bias, c;
  std::vector<const T*> from;
  std::vector<T*> to;
  std::vector<ptrdiff_t> offsets;
};

template <class T>
void ExpectProduct(const Operands<T>& x, bool with_bias, bool relu) {
  // The bound for any order of both sums.
  const double error =
      2 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (1 + static_cast<double>(x.k));
  for (int64_t i = 0; i < x.size.m; ++i) {
    for (int64_t j = 0; j < x.ldc; ++j) {
      const T is = x.c[static_cast<size_t>(i * x.ldc + j)];
      if (j >= x.size.n) {
        ASSERT_EQ(is, T(77)) << "behind row " << i;
        continue;
      }
      const auto [sum, magnitude] = x.SumOf(i, j, with_bias);
      ASSERT_NEAR(is, relu ? std::max(sum, 0.0) : sum, error * magnitude)
          << x.size.m << "x" << x.size.n << "x" << x.k << ", element " << i << ", " << j;
    }
  }
}

template <class T>
void MultiplyBy(const DotKernels& code, const DotTask<T>& task, const math::Rows<T>& rows) {
  if constexpr (std::is_same_v<T, float>) code.f32(task, rows);
  else code.f64(task, rows);
}

template <class T>
class Dots : public ::testing::Test {};
using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Dots, Floats);

TYPED_TEST(Dots, AreThoseOfPlainLoopsInEveryCode) {
  for (size_t code = 0; code < AllDotKernels().size(); ++code) {
    SCOPED_TRACE("instruction set " + std::to_string(code));
    for (const Size& size : kSizes) {
      for (const bool with_bias : {false, true}) {
        for (const bool relu : {false, true}) {
          Operands<TypeParam> x(size);
          MultiplyBy(*AllDotKernels()[code], x.task(with_bias, relu ? Activation::kRelu : Activation::kNone),
                     x.rows());
          ExpectProduct(x, with_bias, relu);
        }
      }
    }
  }
}

TYPED_TEST(Dots, UseTheBestCode) {
  for (const Size& size : kSizes) {
    Operands<TypeParam> best(size);
    Operands<TypeParam> chosen(size);
    MultiplyBy(*AllDotKernels().front(), best.task(true, Activation::kNone), best.rows());
    Multiply(chosen.task(true, Activation::kNone), chosen.rows());
    ASSERT_EQ(best.c, chosen.c);
  }
}

TYPED_TEST(Dots, ReadRowsOfAMatrix) {
  for (const Size& size : kSizes) {
    Operands<TypeParam> x(size);
    std::vector<TypeParam> matrix;
    for (int64_t i = 0; i < size.m; ++i)
      for (int64_t p = 0; p < x.k; ++p) matrix.push_back(x.at(i, p));
    const auto k = static_cast<size_t>(x.k);
    Multiply(
        DotProduct<TypeParam>{math::MatrixRows<TypeParam>(matrix.data(), static_cast<size_t>(size.m), k, k),
                              x.task(true, Activation::kNone), x.c.data(), x.ldc});
    ExpectProduct(x, true, false);
  }
}

TYPED_TEST(Dots, KeepNanOfTheirRow) {
  for (const DotKernels* code : AllDotKernels()) {
    Operands<TypeParam> x({3, 5, 1, 9});
    x.a[static_cast<size_t>(x.lda + 8)] = std::numeric_limits<TypeParam>::quiet_NaN();
    MultiplyBy(*code, x.task(true, Activation::kNone), x.rows());
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
