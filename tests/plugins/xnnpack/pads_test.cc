// SPDX-License-Identifier: Apache-2.0
// PAD of bytes: alone, and before a convolution, which XNNPACK may compute with it.
#include <gtest/gtest.h>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

struct Pads {
  std::vector<int32_t> amounts;  // before and behind each dimension
  std::vector<int64_t> result;   // of [2, 5, 6, 3]
};

const Pads kPads[] = {{{0, 0, 1, 1, 1, 1, 0, 0}, {2, 7, 8, 3}}, {{0, 0, 2, 0, 0, 0, 0, 0}, {2, 7, 6, 3}},
                      {{1, 0, 0, 0, 0, 0, 0, 0}, {3, 5, 6, 3}}, {{0, 0, 0, 1, 2, 0, 1, 2}, {2, 6, 8, 6}},
                      {{0, 0, 0, 0, 0, 0, 0, 0}, {2, 5, 6, 3}}, {{0, 1, 1, 0, 0, 3, 0, 0}, {3, 6, 9, 3}}};

ValueId Padded(Net& net, DType dtype, const Pads& pads, const Q& q) {
  const ValueId x = net.Input(dtype, {2, 5, 6, 3}, q);
  const ValueId amounts = net.Const<int32_t>(DType::kI32, {4, 2}, pads.amounts);
  return net.Add(Op::kPad, {x, amounts}, dtype, pads.result, {}, q);
}

TEST(Pads, OfBytesAreTheSameForEveryZeroPoint) {
  for (const DType dtype : {DType::kI8, DType::kU8}) {
    for (const int zero : {-128, -5, 0, 7}) {
      for (const Pads& pads : kPads) {
        SCOPED_TRACE(::testing::Message() << Name(dtype) << ", zero point " << zero << ", pads "
                                          << ::testing::PrintToString(pads.amounts));
        const auto module = [&] {
          Net net;
          return net.Take({Padded(net, dtype, pads, {0.05f, dtype == DType::kU8 ? zero + 128 : zero})});
        };
        const Ran want = RunNet(module(), {}, 1, false), got = RunNet(module());
        EXPECT_EQ(want.error + got.error, "");
        ExpectSame(want.outputs, got.outputs);
      }
    }
  }
}

TEST(Pads, BeforeConvolutionsAreZerosForEveryZeroPoint) {
  for (const int zero : {-128, -5, 0, 7}) {
    SCOPED_TRACE(zero);
    const auto module = [&] {
      Net net;
      const ValueId x = Padded(net, DType::kI8, kPads[0], {0.05f, zero});
      const ValueId filter =
          net.Const<int8_t>(DType::kI8, {4, 3, 3, 3}, Noise<int8_t>(108, 5, -128, 128), {{0.5f}});
      const Attrs valid = Options("padding", "VALID", "stride_h", 1, "stride_w", 1);
      return net.Take(
          {net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kI8, {2, 5, 6, 4}, valid, {25.6f, 3})});
    };
    const Ran want = RunNet(module(), {}, 1, false), got = RunNet(module());
    EXPECT_EQ(want.error + got.error, "");
    ASSERT_EQ(want.outputs.size(), got.outputs.size());
    const auto a = want.outputs[0].data.As<int8_t>();
    const auto b = got.outputs[0].data.As<int8_t>();
    // Halves are rounded in two ways.
    for (size_t i = 0; i < a.size(); ++i) ASSERT_LE(std::abs(a[i] - b[i]), 1) << i;
  }
}

}  // namespace
}  // namespace fusebox::xnnpack_test
