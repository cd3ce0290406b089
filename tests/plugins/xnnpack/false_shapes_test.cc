// SPDX-License-Identifier: Apache-2.0
// Files whose shapes differ from the ones that their ops give, found by the fuzz target `delegated`.
#include <gmock/gmock.h>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

// (a, b) packed along the last dim, declared with the shape `declared`, and added to itself.
std::unique_ptr<Module> Packed(std::vector<int64_t> a, std::vector<int64_t> b,
                               std::vector<int64_t> declared) {
  Net net;
  const ValueId x = net.Input(DType::kF32, std::move(a)), y = net.Input(DType::kF32, std::move(b));
  const ValueId both =
      net.Add(Op::kPack, {x, y}, DType::kF32, declared, Options("axis", -1, "values_count", 2));
  return net.Take({net.Add(Op::kAdd, {both, both}, DType::kF32, declared)});
}

TEST(FalseShapes, ANodeThatItsKernelRejectsIsNotOffered) {
  const Ran ran = RunNet(Packed({2}, {}, {2, 2}));
  EXPECT_THAT(ran.error, ::testing::HasSubstr("plugin fusebox.cpu: operands of different ranks"));
}

TEST(FalseShapes, ADelegateIsToldTheRankThatTheKernelFinds) {
  const Ran ran = RunNet(Packed({2}, {2}, {2, 1, 1, 1, 2}));
  EXPECT_EQ(ran.error, "");
  ASSERT_EQ(ran.outputs.size(), 1);
  EXPECT_EQ(ToString(ran.outputs[0].type), "f32[2,2]");
}

// XNNPACK would keep two billion addresses a pixel.
TEST(FalseShapes, AWindowLargerThanTheImageRunsOnKernels) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 1, 3, 1});
  Attrs attrs = Options("filter_height", 1, "filter_width", INT32_MAX);
  attrs.Set("padding", "SAME");
  attrs.Set("stride_h", 1);
  attrs.Set("stride_w", 1);
  const ValueId y = net.Add(Op::kMaxPool2D, {x}, DType::kF32, {1, 1, 3, 1}, attrs);
  const Ran ran = RunNet(net.Take({net.Add(Op::kAdd, {y, y}, DType::kF32, {1, 1, 3, 1})}));
  EXPECT_THAT(ran.error,
              ::testing::HasSubstr("run by fusebox.cpu: xnnpack: ATTR: a window larger than the image"));
}

}  // namespace
}  // namespace fusebox::xnnpack_test
