// SPDX-License-Identifier: Apache-2.0
// Constants that are no weights, as f16 and as i8: each of their elements counts by itself.
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

// Of so many features, each with a spread of its own, from 1e-3 to 1e3.
std::vector<float> Spreads(size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = std::pow(10.0f, -3 + 6 * static_cast<float>(i) / static_cast<float>(count - 1));
  return out;
}

TEST(Constants8, DivisorsStayFloat) {
  Eight m;
  m.fill[0] = [](std::mt19937& random, size_t count) {
    auto values = Spreads(count);
    for (float& v : values) v *= std::uniform_real_distribution<float>(-1, 1)(random);
    return values;
  };
  const ValueId y = m.Op1(Op::kDiv, {m.In({1, 1500}), m.C({1500}, Spreads(1500))});
  ASSERT_EQ(m.Quantize({m.Dense(y, 16)}, Quantization::kDynamic), "");
  EXPECT_EQ(m.Ops(), "DIV FULLY_CONNECTED");
  EXPECT_GT(m.Snr(), 35);
}

TEST(Constants8, NormalizationOfFeaturesStaysFloat) {
  Eight m;
  m.fill[0] = [](std::mt19937& random, size_t count) {
    auto values = Spreads(count);
    for (float& v : values) v *= std::uniform_real_distribution<float>(0, 2)(random);
    return values;
  };
  const ValueId spreads = m.C({1500}, Spreads(1500));
  const ValueId y = m.Op1(Op::kDiv, {m.Op1(Op::kSub, {m.In({1, 1500}), spreads}), spreads});
  ASSERT_EQ(m.Quantize({m.Dense(y, 16)}), "");
  EXPECT_EQ(m.Ops(), "SUB DIV QUANTIZE FULLY_CONNECTED DEQUANTIZE");
  EXPECT_GT(m.Snr(), 22);
}

TEST(Constants8, TablesAndKernelsAreBytes) {
  Eight m;
  const ValueId x = m.In({1, 40, 40});
  const ValueId y = m.Op1(Op::kBatchMatmul, {x, m.Weights({1, 40, 40})});
  ASSERT_EQ(m.Quantize({y}, Quantization::kDynamic), "");
  EXPECT_EQ(m.Ops(), "DEQUANTIZE BATCH_MATMUL");
  EXPECT_GT(m.Snr(), 35);
}

TEST(Constants8, DivisorsTooSmallForHalvesStayFloat) {
  Eight m;
  m.fill[0] = [](std::mt19937& random, size_t count) {
    std::vector<float> values(count);
    for (float& v : values) v = 1e-8f * std::uniform_real_distribution<float>(-1, 1)(random);
    return values;
  };
  const ValueId y = m.Op1(Op::kDiv, {m.In({1, 200}), m.C({200}, std::vector<float>(200, 1e-8f))});
  ASSERT_EQ(m.Quantize({y}, Quantization::kFloat16), "");
  EXPECT_EQ(m.Ops(), "DIV");
  EXPECT_THAT(m.Notes(), HasSubstr("DIV: a constant stays f32: f16 cannot represent its values"));
  EXPECT_GT(m.Snr(), 60);
}

// Beside others such weights come to nothing anyway.
TEST(Constants8, WeightsTooSmallForHalvesBecomeZero) {
  Eight m;
  std::vector<float> weights(256, 0.5f);
  weights[3] = 1e-12f;
  const ValueId x = m.In({1, 16});
  ASSERT_EQ(m.Quantize({m.Op1(Op::kFullyConnected, {x, m.C({16, 16}, weights)})}, Quantization::kFloat16),
            "");
  EXPECT_EQ(m.Ops(), "DEQUANTIZE FULLY_CONNECTED");
}

}  // namespace
}  // namespace fusebox::converter
