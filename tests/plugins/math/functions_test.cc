// SPDX-License-Identifier: Apache-2.0
// Functions of arrays beside the standard library in f64, in every instruction set of this machine.
#include "plugins/math/simd/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/plugins/math/arguments.h"

namespace fusebox::math {
namespace {

constexpr float kUnbounded = std::numeric_limits<float>::infinity();

struct FunctionCase {
  Function function;
  double (*real)(double);
  float most;   // of the arguments
  double ulps;  // of the result
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

constexpr FunctionCase kFunctions[] = {
    {Function::kExp, [](double x) { return std::exp(x); }, 200, 3},
    {Function::kElu, [](double x) { return x < 0 ? std::expm1(x) : x; }, 1000, 4},
    {Function::kTanh, [](double x) { return std::tanh(x); }, 1000, 3},
    {Function::kSigmoid, Sigmoid, 1000, 3},
    {Function::kSilu, [](double x) { return x * Sigmoid(x); }, 80, 4},
};

std::vector<float> Mapped(const FunctionKernels& code, Function function, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  code.map(function, x.data(), y.data(), x.size());
  return y;
}

TEST(Functions, AreWithinTheirUlps) {
  for (const FunctionKernels* code : AllFunctionKernels()) {
    for (const FunctionCase& c : kFunctions) {
      const std::vector<float> x = Arguments(c.most);
      const std::vector<float> y = Mapped(*code, c.function, x);
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected = c.real(static_cast<double>(x[i]));
        if (expected > static_cast<double>(std::numeric_limits<float>::max()))
          ASSERT_EQ(y[i], kUnbounded) << x[i];
        else ASSERT_LE(Ulps(y[i], expected), c.ulps) << static_cast<int>(c.function) << " of " << x[i];
      }
    }
  }
}

// The error of a sum of two terms of x's size.
TEST(Functions, GeluIsItsFormula) {
  for (const FunctionKernels* code : AllFunctionKernels()) {
    const std::vector<float> x = Arguments(1000);
    const std::vector<float> y = Mapped(*code, Function::kGelu, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto v = static_cast<double>(x[i]);
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v);
      ASSERT_NEAR(y[i], 0.5 * v * (1 + std::tanh(inner)), 4e-7 * std::abs(v)) << v;
    }
  }
}

TEST(Functions, NanStaysAndInfinitiesHaveTheirLimits) {
  struct Limits {
    Function function;
    float below, above;
  };
  constexpr Limits kLimits[] = {{Function::kExp, 0, kUnbounded},
                                {Function::kElu, -1, kUnbounded},
                                {Function::kTanh, -1, 1},
                                {Function::kSigmoid, 0, 1}};
  for (const FunctionKernels* code : AllFunctionKernels()) {
    for (const Limits& limits : kLimits) {
      const std::vector<float> y = Mapped(*code, limits.function, {std::nanf(""), -kUnbounded, kUnbounded});
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], limits.below) << static_cast<int>(limits.function);
      EXPECT_EQ(y[2], limits.above) << static_cast<int>(limits.function);
    }
  }
}

// Values behind the last are neither read nor written, in place too; a result does not depend on its place.
TEST(Functions, TakeEveryCount) {
  for (const FunctionKernels* code : AllFunctionKernels()) {
    const float alone = Mapped(*code, Function::kTanh, {0.5F})[0];
    for (size_t count = 0; count < 70; ++count) {
      std::vector<float> x(count + 1, 0.5F);
      code->map(Function::kTanh, x.data(), x.data(), count);
      EXPECT_EQ(x[count], 0.5F);
      for (size_t i = 0; i < count; ++i) ASSERT_EQ(x[i], alone);
    }
  }
}

}  // namespace
}  // namespace fusebox::math
