// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV and STRIDED_SLICE where XNNPACK's idea of a window or box is not the format's: who runs
// them, and to what.
#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

// [1, 4, 5, 3] to [1, height, width, 2] by a filter of 3 x 4 in steps of two.
Build Transposed(const char* padding, int64_t height, int64_t width) {
  return [=] {
    Net net;
    const ValueId shape = net.Const<int32_t>(
        DType::kI32, {4}, {1, static_cast<int32_t>(height), static_cast<int32_t>(width), 2});
    const ValueId filter = net.Const<float>(DType::kF32, {2, 3, 4, 3}, Noise<float>(72, 3, -1, 1));
    const ValueId x = net.Input(DType::kF32, {1, 4, 5, 3});
    return net.Take({net.Add(Op::kTransposeConv, {shape, filter, x}, DType::kF32, {1, height, width, 2},
                             Options("padding", padding, "stride_h", 2, "stride_w", 2))});
  };
}

std::vector<float> ByKernels(const Build& build) {
  const auto model = Model::FromModule(
      build(), {.registry = XnnpackRegistry(), .delegates = std::vector<Config::Delegate>{}});
  EXPECT_TRUE(model) << model.error().message;
  auto session = Session::Create(*model, {.threads = 1});
  EXPECT_TRUE(session) << session.error().message;
  EXPECT_TRUE((*session)->SetInput(0, NoiseFor((*session)->inputs()[0].type, 7)));
  EXPECT_TRUE((*session)->Run());
  const auto output = (*session)->output(0);
  const auto values = output->data.As<float>();
  return {values.begin(), values.end()};
}

struct Row {
  const char *name, *padding;
  int64_t height, width;
  bool taken;
};

class TransposedBy : public testing::TestWithParam<Row> {};

TEST_P(TransposedBy, XnnpackIsWhatTheKernelsMake) {
  const auto [name, padding, height, width, taken] = GetParam();
  const Build build = Transposed(padding, height, width);
  const Ran ran = RunNet(build());
  EXPECT_EQ(ran.error.empty(), taken) << ran.error;
  ASSERT_EQ(ran.outputs.size(), 1u) << ran.error;
  const auto got = ran.outputs[0].data.As<float>();
  const std::vector<float> want = ByKernels(build);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Windows, TransposedBy,
                         testing::Values(Row{"ValidFull", "VALID", 9, 12, true},
                                         Row{"ValidLonger", "VALID", 10, 13, true},
                                         Row{"ValidCut", "VALID", 8, 10, false},
                                         Row{"Same", "SAME", 8, 10, true}, Row{"SameOdd", "SAME", 7, 9, true},
                                         Row{"SameOfFewer", "SAME", 6, 10, false}),
                         [](const auto& info) { return info.param.name; });

// XNNPACK works an image off in as many parts as a step has pixels, and divides by zero where one has none.
TEST(Transposed, OutputsSmallerThanAStepAreLeftToTheKernels) {
  for (const int64_t step : {2, 3, 4, 5}) {
    for (int64_t height = 1; height <= step; ++height) {
      const Build build = [=] {
        Net net;
        const ValueId shape = net.Const<int32_t>(DType::kI32, {4}, {1, static_cast<int32_t>(height), 12, 2});
        const ValueId filter = net.Const<float>(DType::kF32, {2, 5, 3, 3}, Noise<float>(90, 3, -1, 1));
        const ValueId x = net.Input(DType::kF32, {1, 1, 6, 3});
        return net.Take({net.Add(Op::kTransposeConv, {shape, filter, x}, DType::kF32, {1, height, 12, 2},
                                 Options("padding", "SAME", "stride_h", step, "stride_w", 2))});
      };
      SCOPED_TRACE(std::to_string(height) + " by " + std::to_string(step));
      const Ran ran = RunNet(build());
      EXPECT_EQ(ran.error.empty(), height == step) << ran.error;
      ASSERT_EQ(ran.outputs.size(), 1u) << ran.error;
      const auto got = ran.outputs[0].data.As<float>();
      const std::vector<float> want = ByKernels(build);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
    }
  }
}

// With an addition, since a slice makes no partition of its own.
TEST(StridedSlice, WithEndAsAnOffsetIsLeftToTheKernels) {
  Net net;
  const auto one = [&](int32_t v) { return net.Const<int32_t>(DType::kI32, {1}, std::vector<int32_t>{v}); };
  const ValueId x = net.Input(DType::kF32, {5}), begin = one(1), end = one(2), steps = one(1);
  const ValueId cut =
      net.Add(Op::kStridedSlice, {x, begin, end, steps}, DType::kF32, {2}, Options("offset", true));
  const Ran ran = RunNet(net.Take({net.Add(Op::kAdd, {cut, cut}, DType::kF32, {2})}));
  EXPECT_NE(ran.error.find("offset"), std::string::npos) << ran.error;
  const auto given = NoiseFor({DType::kF32, Shape({5})}, 7);
  ASSERT_EQ(ran.outputs.size(), 1u) << ran.error;
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(ran.outputs[0].data.As<float>()[i], 2 * given.data.As<float>()[i + 1]);
}

}  // namespace
}  // namespace fusebox::xnnpack_test
