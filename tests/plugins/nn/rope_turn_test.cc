// SPDX-License-Identifier: Apache-2.0
// The code of rotary embeddings for each SIMD target, beside the definition in f64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugins/nn/rope/turn.h"

namespace fusebox::nn_test {
namespace {

class RopeTargets : public ::testing::TestWithParam<size_t> {
 protected:
  const nn::RopeCode& code_ = *nn::RopeCodes()[GetParam()];
};

TEST_P(RopeTargets, AnglesOfAllPositions) {
  const std::vector<float> rates = {1, 0.75f, 0.1f, 3e-5f, 0, -1, 1.5707964f, 1e-30f, 2, 1e-3f, 0.5f};
  for (size_t count = 1; count <= rates.size(); ++count)
    for (const double position : {0.0, 1.0, -1.0, 5.0, 1023.0, 131071.0, -65537.0, 1e8})
      for (const bool divides : {false, true}) {
        std::vector<float> cosines(count + 1, 77), sines(count + 1, 77);
        code_.angles(position, rates.data(), divides, count, cosines.data(), sines.data());
        EXPECT_EQ(cosines[count], 77);
        EXPECT_EQ(sines[count], 77);
        for (size_t i = 0; i < count; ++i) {
          const auto rate = static_cast<double>(rates[i]);
          const double angle = divides ? position / rate : position * rate;
          if (!(std::fabs(angle) <= 1e8)) continue;
          EXPECT_NEAR(static_cast<double>(cosines[i]), std::cos(angle), 1.2e-7) << angle;
          EXPECT_NEAR(static_cast<double>(sines[i]), std::sin(angle), 1.2e-7) << angle;
        }
      }
}

TEST_P(RopeTargets, AnglesThatAreNoNumbersAreNan) {
  const float rates[] = {std::numeric_limits<float>::infinity(), NAN};
  float cosines[2], sines[2];
  code_.angles(1, rates, false, 2, cosines, sines);
  for (const float value : {cosines[0], cosines[1], sines[0], sines[1]}) EXPECT_TRUE(std::isnan(value));
}

TEST_P(RopeTargets, RotatesAllSizes) {
  for (size_t half = 1; half <= 70; ++half) {
    std::vector<float> x(2 * half), cosines(half), sines(half), y(2 * half + 1, 77);
    for (size_t i = 0; i < half; ++i) {
      x[i] = static_cast<float>(i) - 3;
      x[half + i] = 2 - static_cast<float>(i) / 4;
      cosines[i] = static_cast<float>(i % 5) / 4;
      sines[i] = static_cast<float>(i % 3) / 2 - 0.5f;
    }
    code_.rotate(x.data(), cosines.data(), sines.data(), half, y.data());
    for (size_t i = 0; i < half; ++i) {
      EXPECT_FLOAT_EQ(y[i], x[i] * cosines[i] - x[half + i] * sines[i]) << half << " " << i;
      EXPECT_FLOAT_EQ(y[half + i], x[half + i] * cosines[i] + x[i] * sines[i]) << half << " " << i;
    }
    EXPECT_EQ(y[2 * half], 77);
  }
}

INSTANTIATE_TEST_SUITE_P(All, RopeTargets, ::testing::Range<size_t>(0, nn::RopeCodes().size()));

}  // namespace
}  // namespace fusebox::nn_test
