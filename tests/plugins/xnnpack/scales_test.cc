// SPDX-License-Identifier: Apache-2.0
// Scales of 8-bit ops. Extreme ones: partitions open at once and compute what kernels compute. Two that differ:
// the result is the nearest step, as on kernels.
#include <gtest/gtest.h>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

// The least scale of a filter is searched for when the model is opened: near 0, or above 1, it has no end.
TEST(Scales, FarApartComputeTheSame) {
  const std::vector<std::pair<float, float>> scales = {{1e-12f, 100},    {1e-6f, 1e6f},   {1e-30f, 1e-30f},
                                                       {2e-38f, 2e-38f}, {2e-38f, 3e38f}, {3e38f, 2e-38f}};
  for (const auto& [in, out] : scales) {
    SCOPED_TRACE(std::to_string(in) + " " + std::to_string(out));
    const auto module = [&] {
      Net net;
      const ValueId x = net.Input(DType::kI8, {2, 8}, {in, 3});
      const ValueId filter =
          net.Const<int8_t>(DType::kI8, {4, 8}, Noise<int8_t>(32, 5, -128, 128), {{0.5f}, {1e-3f}, {1}, {2}});
      return net.Take(
          {net.Add(Op::kFullyConnected, {x, filter, kNoValue}, DType::kI8, {2, 4}, {}, {out, 1})});
    };
    const Ran want = RunNet(module(), {}, 1, false), got = RunNet(module());
    EXPECT_EQ(want.error, "");
    ExpectSame(want.outputs, got.outputs);
  }
}

constexpr std::pair<float, float> kRatios[] = {{0.0347f, 0.0351f}, {0.011f, 0.0257f}, {0.0613f, 0.0229f}};

// XNNPACK's conversion between two scales is up to a step off: its factor has 8 bits.
TEST(Scales, ThatDifferAreRoundedOnceInConcatenations) {
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const auto& [in, out] : kRatios) {
      SCOPED_TRACE(std::to_string(in) + " " + std::to_string(out));
      const auto module = [&] {
        Net net;
        const ValueId a = net.Input(dtype, {16, 64}, {in, 3});
        const ValueId b = net.Input(dtype, {16, 32}, {out, 100});
        return net.Take({net.Add(Op::kConcatenation, {a, b}, dtype, {16, 96}, Options("axis", 1), {out, 100})});
      };
      const Ran want = RunNet(module(), {}, 1, false), got = RunNet(module());
      EXPECT_EQ(want.error + got.error, "");
      ExpectSame(want.outputs, got.outputs);
    }
  }
}

TEST(Scales, ThatDifferAreRoundedOnceInClamps) {
  for (const Op op : {Op::kRelu, Op::kRelu6, Op::kReluN1To1}) {
    for (const auto& [in, out] : kRatios) {
      SCOPED_TRACE(std::string(Name(op)) + " " + std::to_string(in) + " " + std::to_string(out));
      const auto module = [&] {
        Net net;
        const ValueId x = net.Input(DType::kI8, {16, 64}, {in, 3});
        return net.Take({net.Add(op, {x}, DType::kI8, {16, 64}, {}, {out, -100})});
      };
      const Ran want = RunNet(module(), {}, 1, false), got = RunNet(module());
      EXPECT_EQ(want.error + got.error, "");
      ExpectSame(want.outputs, got.outputs);
    }
  }
}

}  // namespace
}  // namespace fusebox::xnnpack_test
