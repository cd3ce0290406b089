// SPDX-License-Identifier: Apache-2.0
// Activations in 16 bits with weights in 8 bits, and a scale per row of the weights of FULLY_CONNECTED.
#include "host/graph/versions.h"
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

const Node& NodeOf(const Function& f, Op op) {
  for (const auto& node : f.nodes)
    if (node->is(op)) return *node;
  ADD_FAILURE() << "no " << Name(op);
  return *f.nodes[0];
}

TEST(Words, AreFinerThanBytes) {
  const auto snr = [](Quantization as) {
    Eight m;
    const ValueId x = m.In({2, 16});
    EXPECT_EQ(m.Quantize({m.Softmax(m.Dense(m.Op1(Op::kTanh, {m.Dense(x, 24)}), 8))}, as), "");
    EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED TANH FULLY_CONNECTED SOFTMAX DEQUANTIZE");
    return m.Snr();
  };
  EXPECT_GT(snr(Quantization::kInt16x8), snr(Quantization::kInt8) + 3);
}

TEST(Words, HaveZeroPointZeroAndWideBiases) {
  Eight m;
  const ValueId x = m.In({2, 16});
  const ValueId dense = m.Dense(x, 24);
  ASSERT_EQ(m.Quantize({m.Op1(Op::kLogistic, {dense})}, Quantization::kInt16x8), "");
  const Node& product = NodeOf(m.f, Op::kFullyConnected);
  EXPECT_EQ(m.f.value(product.operands[0]).type.dtype, DType::kI16);
  EXPECT_EQ(m.f.value(product.operands[1]).type.dtype, DType::kI8);
  EXPECT_EQ(m.f.value(product.operands[2]).type.dtype, DType::kI64);
  EXPECT_EQ(m.QuantOf(product.operands[0]).zero_points[0], 0);
  const Node& logistic = NodeOf(m.f, Op::kLogistic);
  EXPECT_FLOAT_EQ(m.QuantOf(logistic.results[0]).scales[0], 1.0f / 32768);
  EXPECT_EQ(LowestVersion(m.f, product), 7);
  EXPECT_EQ(LowestVersion(m.f, logistic), 3);
}

TEST(Words, AddWithScalesThatAreNoPowersOfTwo) {
  const auto snr = [](Quantization as) {
    Eight m;
    const ValueId x = m.In({2, 2});
    m.fill[0] = [](std::mt19937& random, size_t count) {  // calibration sees every pair
      std::vector<float> values(count);
      for (float& v : values) v = static_cast<float>(random() % 3) - 1;
      return values;
    };
    const ValueId y = m.Op1(Op::kAdd, {m.Dense(x, 16), m.C({16}, std::vector<float>(16, 0.3f))},
                            Eight::With({{"fused_activation_function", "RELU"}}));
    EXPECT_EQ(m.Quantize({m.Op1(Op::kMul, {y, m.Dense(x, 16)})}, as), "");
    if (as == Quantization::kInt16x8) {
      EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED ADD FULLY_CONNECTED MUL DEQUANTIZE");
      const Node& sum = NodeOf(m.f, Op::kAdd);
      EXPECT_FALSE(sum.attrs.b("pot_scale_int16", true));
      EXPECT_EQ(LowestVersion(m.f, sum), 3);
    }
    return m.Snr();
  };
  EXPECT_GT(snr(Quantization::kInt16x8), snr(Quantization::kInt8) + 6);
}

TEST(Words, LeaveOpsWithoutAFormInFloats) {
  Eight m;
  const ValueId x = m.In({2, 16});
  ASSERT_EQ(m.Quantize({m.Op1(Op::kExp, {m.Dense(x, 16)})}, Quantization::kInt16x8), "");
  EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED DEQUANTIZE EXP");
}

TEST(Words, AreInputsAndOutputsToo) {
  Eight m;
  m.options.input_type = m.options.output_type = DType::kI16;
  ASSERT_EQ(m.Quantize({m.Dense(m.In({1, 16}), 8)}, Quantization::kInt16x8), "");
  EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
  EXPECT_EQ(m.f.value(m.f.inputs[0]).type.dtype, DType::kI16);
  EXPECT_EQ(m.f.value(m.f.outputs[0]).type.dtype, DType::kI16);
}

TEST(Words, NeedTheirMode) {
  Eight m;
  m.options.input_type = DType::kI16;
  const ValueId y = m.Dense(m.In({1, 16}), 8);
  EXPECT_THAT(m.Quantize({y}, Quantization::kInt8), HasSubstr("--quantize int16x8"));
  m.options.input_type = DType::kU8;
  EXPECT_THAT(m.Quantize({y}, Quantization::kInt16x8), HasSubstr("--quantize int8"));
  m.options.input_type = DType::kF32;
  m.options.per_channel_fc = true;
  EXPECT_THAT(m.Quantize({y}, Quantization::kDynamic), HasSubstr("requires integer activations"));
}

TEST(PerChannelRows, KeepSmallRowsBesideLargeOnes) {
  const auto snr = [](bool rows, Quantization as) {
    Eight m;
    m.options.per_channel_fc = rows;
    std::vector<float> weights(8 * 16);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] = std::sin(1.7f * static_cast<float>(i)) * (i < 64 ? 1.0f : 0.002f);
    const ValueId y = m.Op1(Op::kFullyConnected, {m.In({1, 16}), m.C({8, 16}, weights), kNoValue},
                            Eight::With({{"keep_num_dims", true}}));
    const ValueId small = m.Op1(Op::kStridedSlice, {y, m.Ints({0, 4}), m.Ints({1, 8}), m.Ints({1, 1})});
    EXPECT_EQ(m.Quantize({small}, as), "");
    const Node& product = NodeOf(m.f, Op::kFullyConnected);
    EXPECT_THAT(m.QuantOf(product.operands[1]).scales, SizeIs(rows ? 8 : 1));
    return m.Snr();
  };
  EXPECT_GT(snr(true, Quantization::kInt16x8), snr(false, Quantization::kInt16x8) + 20);
  snr(true, Quantization::kInt8);
}

}  // namespace
}  // namespace fusebox::converter
