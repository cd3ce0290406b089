// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/fixed_math.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fusebox::rnn {
namespace {

// The largest distance from a function, in steps of the result, over all 16-bit numbers.
template <class Fixed, class Real>
double Farthest(const Fixed& fixed, const Real& real, int bits) {
  double farthest = 0;
  for (int32_t x = -32768; x < 32768; ++x) {
    const double wanted = 32768 * real(std::ldexp(x, -bits));
    farthest = std::max(farthest, std::abs(fixed(static_cast<int16_t>(x)) - wanted));
  }
  return farthest;
}

TEST(FixedSigmoid, IsCloseEverywhere) {
  EXPECT_LT(Farthest(FixedSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 12), 6.5);
}

TEST(FixedTanh, IsCloseEverywhereForEveryFraction) {
  for (int bits = 9; bits <= 15; ++bits) {
    const auto fixed = [&](int16_t x) { return FixedTanh(x, bits); };
    EXPECT_LT(Farthest(fixed, [](double x) { return std::tanh(x); }, bits), 12.5) << bits;
  }
}

TEST(FixedTanh, IsOdd) {
  for (int32_t x = 0; x < 32768; ++x)
    ASSERT_EQ(FixedTanh(static_cast<int16_t>(-x), 12), -FixedTanh(static_cast<int16_t>(x), 12)) << x;
}

TEST(FixedFunctions, AreExactAtZeroAndAtTheEnds) {
  EXPECT_EQ(FixedSigmoid(0), 16384);
  EXPECT_EQ(FixedTanh(0, 12), 0);
  for (int bits = 9; bits <= 12; ++bits) EXPECT_EQ(FixedTanh(32767, bits), 32767) << bits;
}

}  // namespace
}  // namespace fusebox::rnn
