// SPDX-License-Identifier: Apache-2.0
// Extreme scales of 8-bit ops: partitions open at once and compute what kernels compute.
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

}  // namespace
}  // namespace fusebox::xnnpack_test
