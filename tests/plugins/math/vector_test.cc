// SPDX-License-Identifier: Apache-2.0
// Functions of f32 vectors beside the standard library in f64, in every instruction set of this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/plugins/math/arguments.h"
#include "tests/plugins/math/codes.h"

namespace fusebox::math {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Real>
double WorstUlps(void (*function)(float*, size_t), std::vector<float> x, const Real& real) {
  std::vector<float> y = x;
  function(y.data(), y.size());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, Ulps(y[i], real(static_cast<double>(x[i]))));
  return worst;
}

TEST(Vector, FunctionsAreWithinTheirUlps) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  for (const MathCode* code : MathCodes()) {
    SCOPED_TRACE(code->lanes);
    EXPECT_LE(WorstUlps(code->sigmoid, Arguments(85), sigmoid), 3);
    EXPECT_LE(WorstUlps(code->tanh, Arguments(1000), [](double x) { return std::tanh(x); }), 3);
    std::vector<float> below;
    for (float x = 0; x > -126; x -= 0.0137F) below.push_back(x);
    EXPECT_LE(WorstUlps(code->exp2, below, [](double x) { return std::exp2(x); }), 2);
  }
}

TEST(Vector, NanStaysAndInfinitiesAreTheLimits) {
  for (const MathCode* code : MathCodes()) {
    const std::vector<float> x = {std::nanf(""), kInfinity, -kInfinity};
    std::vector<float> sigmoid = x;
    std::vector<float> tanh = x;
    code->sigmoid(sigmoid.data(), 3);
    code->tanh(tanh.data(), 3);
    EXPECT_TRUE(std::isnan(sigmoid[0]));
    EXPECT_EQ(sigmoid[1], 1);
    EXPECT_NEAR(sigmoid[2], 0, 1e-37);
    EXPECT_TRUE(std::isnan(tanh[0]));
    EXPECT_EQ(tanh[1], 1);
    EXPECT_EQ(tanh[2], -1);
    std::vector<float> power = {std::nanf(""), -kInfinity, -127};
    code->exp2(power.data(), 3);
    EXPECT_TRUE(std::isnan(power[0]));
    EXPECT_EQ(power[1], 0);
    EXPECT_EQ(power[2], 0);
  }
}

TEST(Vector, GatedTanhIsTheProduct) {
  const std::vector<float> x = Arguments(100);
  for (const MathCode* code : MathCodes()) {
    for (const float gate : {-80.0F, -3.0F, 0.0F, 0.7F, 50.0F}) {
      const std::vector<float> gates(x.size(), gate);
      std::vector<float> y = x;
      code->gated_tanh(gates.data(), y.data(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = std::tanh(static_cast<double>(x[i])) / (1 + std::exp(-gate));
        ASSERT_NEAR(y[i], expected, std::abs(expected) * 1e-6 + 2e-30) << x[i] << ", gate " << gate;
      }
    }
  }
}

// Values behind the last are neither read nor written: of every count up to some vectors.
TEST(Vector, CountsFillNoVector) {
  for (const MathCode* code : MathCodes()) {
    for (size_t count = 0; count < 70; ++count) {
      std::vector<float> x(count + 1, 0.5F);
      code->sigmoid(x.data(), count);
      EXPECT_EQ(x[count], 0.5F);
      for (size_t i = 0; i < count; ++i) ASSERT_NEAR(x[i], 0.6224593F, 1e-6F);
    }
  }
}

}  // namespace
}  // namespace fusebox::math
