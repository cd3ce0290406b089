// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "plugins/rnn/simd/bytes.h"
#include "tests/plugins/rnn/fixed_reference.h"

namespace fusebox::rnn {
namespace {

using testing::ReferenceSigmoid;
using testing::ReferenceTanh;

std::vector<int16_t> All() {
  std::vector<int16_t> all(65536);
  std::iota(all.begin(), all.end(), std::numeric_limits<int16_t>::min());
  return all;
}

std::vector<int16_t> Sigmoids(const ByteKernels& code, int bits = 12) {
  std::vector<int16_t> values = All();
  code.sigmoid(values.data(), bits, values.size());
  return values;
}

std::vector<int16_t> Tanhs(const ByteKernels& code, int bits) {
  const std::vector<int16_t> all = All();
  std::vector<int16_t> values(all.size());
  code.tanh(all.data(), bits, values.data(), all.size());
  return values;
}

// The largest distance from a function, in steps of the result.
template <class Real>
double Farthest(const std::vector<int16_t>& fixed, const Real& real, int bits) {
  double farthest = 0;
  for (int32_t x = -32768; x < 32768; ++x) {
    const double wanted = 32768 * real(std::ldexp(x, -bits));
    farthest = std::max(farthest, std::abs(fixed[static_cast<size_t>(x + 32768)] - wanted));
  }
  return farthest;
}

TEST(FixedSigmoid, IsCloseEverywhereForEveryFraction) {
  for (int bits = 9; bits <= 15; ++bits) {
    const auto fixed = Sigmoids(BestByteKernels(), bits);
    EXPECT_LT(Farthest(fixed, [](double x) { return 1 / (1 + std::exp(-x)); }, bits), bits == 14 ? 6.8 : 6.5) << bits;
  }
}

TEST(FixedTanh, IsCloseEverywhereForEveryFraction) {
  for (int bits = 9; bits <= 15; ++bits) {
    const auto fixed = Tanhs(BestByteKernels(), bits);
    EXPECT_LT(Farthest(fixed, [](double x) { return std::tanh(x); }, bits), 12.5) << bits;
  }
}

TEST(FixedTanh, IsOdd) {
  const auto fixed = Tanhs(BestByteKernels(), 12);
  for (size_t x = 0; x < 32768; ++x) ASSERT_EQ(fixed[32768 - x], -fixed[32768 + x]) << x;
}

TEST(FixedFunctions, AreExactAtZeroAndAtTheEnds) {
  EXPECT_EQ(Sigmoids(BestByteKernels())[32768], 16384);
  EXPECT_EQ(Tanhs(BestByteKernels(), 12)[32768], 0);
  for (int bits = 9; bits <= 12; ++bits) EXPECT_EQ(Tanhs(BestByteKernels(), bits).back(), 32767) << bits;
}

TEST(FixedFunctions, AreThoseOfTfliteInEveryCode) {
  const std::vector<int16_t> all = All();
  for (const ByteKernels* code : AllByteKernels()) {
    const auto sigmoids = Sigmoids(*code);
    for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(sigmoids[i], ReferenceSigmoid(all[i])) << all[i];
    for (int bits = 9; bits <= 15; ++bits) {
      const auto tanhs = Tanhs(*code, bits);
      for (size_t i = 0; i < all.size(); ++i)
        ASSERT_EQ(tanhs[i], ReferenceTanh(all[i], bits)) << all[i] << " of " << bits << " bits";
    }
  }
}

// Every length up to some vectors of the widest code; what follows is left as it is.
TEST(FixedFunctions, LeaveWhatFollows) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (size_t n = 0; n < 70; ++n) {
      std::vector<int16_t> values(n + 1, 1000), tanhs(n + 1, 77);
      code->sigmoid(values.data(), 12, n);
      code->tanh(values.data(), 12, tanhs.data(), n);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(values[i], ReferenceSigmoid(1000));
        EXPECT_EQ(tanhs[i], ReferenceTanh(values[i], 12));
      }
      EXPECT_EQ(values[n], 1000);
      EXPECT_EQ(tanhs[n], 77);
    }
  }
}

// Sums near both ends of 16 bits, products beyond 32, halves (`ties`), and every length up to some vectors of
// the widest code.
TEST(FixedFunctions, NormalizeAlikeInEveryCode) {
  for (const ByteKernels* code : AllByteKernels()) {
    for (size_t n = 1; n < 70; ++n) {
      const bool ties = n % 4 == 0;
      std::vector<int16_t> values(n + 1, 77), coefficients(n);
      std::vector<int32_t> bias(n);
      for (size_t i = 0; i < n; ++i) {
        values[i] = static_cast<int16_t>(i % 5 == 0 ? -32768 : i % 7 == 0 ? 32767 : i * 7919 * n);
        coefficients[i] = static_cast<int16_t>(i % 3 == 0 ? -32768 : i * 4099 + n);
        bias[i] = i % 11 == 0 ? INT32_MIN : static_cast<int32_t>(i * 1234577 * n);
        if (ties) {
          coefficients[i] = i % 2 == 0 ? 1 : -3;
          bias[i] = i % 3 == 0 ? 512 : -512;
        }
      }
      int64_t sum = 0, squares = 0, expected_sum = 0, expected_squares = 0;
      for (size_t i = 0; i < n; ++i) {
        expected_sum += values[i];
        expected_squares += int64_t{values[i]} * values[i];
      }
      code->sum_words(values.data(), n, &sum, &squares);
      EXPECT_EQ(sum, expected_sum);
      EXPECT_EQ(squares, expected_squares);
      const WordNorm task{.cells = n,
                          .coefficients = coefficients.data(),
                          .bias = bias.data(),
                          .mean = ties ? 7168 : static_cast<int32_t>(n * 371) - 12000,
                          .deviation = math::FixedPoint(ties         ? 1.0
                                                        : n % 2 == 0 ? 1e-5 * static_cast<double>(n)
                                                                     : 0.9),
                          .by = math::FixedPoint(ties         ? 1.0
                                                 : n % 3 == 0 ? 3e-4
                                                              : 3.5),
                          .values = values.data()};
      const std::vector<int16_t> before = values;
      code->normalize(task);
      for (size_t i = 0; i < n; ++i) {
        const int64_t normal = task.deviation.Times(1024 * before[i] - task.mean);
        const int64_t sized = normal * coefficients[i] + bias[i];
        const auto narrow = math::Saturate<int32_t>((sized > 0 ? sized + 512 : sized - 512) / 1024);
        ASSERT_EQ(values[i], math::Saturate<int16_t>(task.by.Times(narrow))) << i << " of " << n;
      }
      EXPECT_EQ(values[n], 77);
    }
  }
}

}  // namespace
}  // namespace fusebox::rnn
