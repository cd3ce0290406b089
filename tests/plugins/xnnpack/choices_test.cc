// SPDX-License-Identifier: Apache-2.0
// What the delegate leaves to the kernels although XNNPACK could run it, or says to XNNPACK in another way,
// because that is faster.
#include <gtest/gtest.h>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

std::unique_ptr<Module> Depthwise(int64_t window) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 9, 11, 16});
  const ValueId filter = net.Const<float>(DType::kF32, {1, window, window, 16},
                                          Noise<float>(static_cast<size_t>(window * window * 16), 3, -1, 1));
  const ValueId bias = net.Const<float>(DType::kF32, {16}, Noise<float>(16, 4, -1, 1));
  return net.Take({net.Add(Op::kDepthwiseConv2D, {x, filter, bias}, DType::kF32, {1, 9, 11, 16},
                           Options("padding", "SAME", "stride_h", 1, "stride_w", 1, "depth_multiplier", 1))});
}

TEST(Choices, DepthwiseWindowsThatXnnpackDoesSlowlyStayWithTheKernels) {
  EXPECT_EQ(RunNet(Depthwise(5)).error, "");
  const Ran ran = RunNet(Depthwise(7));
  EXPECT_NE(ran.error.find("a window of 49 pixels"), std::string::npos) << ran.error;
  EXPECT_EQ(ran.outputs.size(), 1u);
}

// y = x OP c for an image and a value per channel.
std::vector<float> OverChannels(Op op, bool constant_first, int64_t rows, int64_t columns, bool is_static) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {is_static ? 1 : -1, rows, columns, 3});
  const ValueId c = net.Const<float>(DType::kF32, {1, 1, 3}, {2, -3, 0.5f});
  const auto operands = constant_first ? std::vector{c, x} : std::vector{x, c};
  const Ran ran =
      RunNet(net.Take({net.Add(op, operands, DType::kF32, {is_static ? 1 : -1, rows, columns, 3})}));
  EXPECT_EQ(ran.error, "");
  if (ran.outputs.empty()) return {};
  const auto values = ran.outputs[0].data.As<float>();
  return {values.begin(), values.end()};
}

// A static image gets the constant once per column, an image of unknown size as it stands.
TEST(Choices, ConstantsOfFewChannelsAreRepeatedAndComputeTheSame) {
  for (const Op op : {Op::kSub, Op::kMul, Op::kPrelu}) {
    for (const bool constant_first : {false, true}) {
      if (op == Op::kPrelu && constant_first) continue;
      const auto repeated = OverChannels(op, constant_first, 4, 5, true);
      EXPECT_EQ(repeated.size(), 60u);
      EXPECT_EQ(repeated, OverChannels(op, constant_first, 4, 5, false)) << Name(op);
    }
  }
}

// f32 rows times an i8 filter of four channels.
std::unique_ptr<Module> PerChannel(std::vector<Q> channels) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {2, 8});
  const ValueId filter = net.Const<int8_t>(DType::kI8, {4, 8}, Noise<int8_t>(32, 5, -128, 128), channels);
  return net.Take({net.Add(Op::kFullyConnected, {x, filter, kNoValue}, DType::kF32, {2, 4})});
}

// What a claim does not look at.
TEST(Choices, FiltersWithAChannelThatXnnpackDoesNotTakeGoBackToTheKernels) {
  EXPECT_EQ(RunNet(PerChannel({{0.5f}, {0.25f}, {1}, {2}})).error, "");
  const Ran ran = RunNet(PerChannel({{0.5f}, {0.25f}, {1}, {2, 3}}));
  EXPECT_NE(ran.error.find("filter has a zero point that is not 0"), std::string::npos) << ran.error;
  const Ran without = RunNet(PerChannel({{0.5f}, {0.25f}, {1}, {2, 3}}), {}, 1, false);
  ExpectSame(without.outputs, ran.outputs);
  EXPECT_EQ(ran.outputs.size(), 1u);
}

TEST(Choices, FiltersWithAChannelThatNobodyTakesAreRefusedByName) {
  for (const float scale : {-1.0f, std::numeric_limits<float>::infinity()}) {
    const Ran ran = RunNet(PerChannel({{0.5f}, {0.25f}, {1}, {scale}}));
    EXPECT_NE(ran.error.find("FULLY_CONNECTED"), std::string::npos) << ran.error;
    EXPECT_NE(ran.error.find("a scale of " + std::to_string(scale)), std::string::npos) << ran.error;
    EXPECT_TRUE(ran.outputs.empty());
  }
}

}  // namespace
}  // namespace fusebox::xnnpack_test
