// SPDX-License-Identifier: Apache-2.0
// Single ops of 8 and 4 bits through XNNPACK, beside stock TFLite's kernels: at most one step apart, which is
// the rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "host/tflite/tflite.h"
#include "tests/plugins/xnnpack/net.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::xnnpack_test {
namespace {

constexpr Q kIn{0.05f, 3}, kOther{0.03f, -20}, kOut{0.08f, -5};
constexpr Q kUnsignedIn{0.05f, 131}, kUnsignedOther{0.03f, 108}, kUnsignedOut{0.08f, 123};

struct Single {
  std::string name;
  Build build;
  double steps = 1;     // of the result's scale
  double relative = 0;  // to the largest value, for results that are f32
};

Q Moved(Q q, bool is_unsigned) { return is_unsigned ? Q{q.scale, q.zero_point + 128} : q; }
DType Bits(bool is_unsigned) { return is_unsigned ? DType::kU8 : DType::kI8; }

// An op of one image [1, 9, 11, 8] (or of two) with a result of these dims.
Build Elementwise(Op op, bool u, size_t operands, Attrs attrs = {}, std::vector<int64_t> dims = {1, 9, 11, 8},
                  Q out = kOut) {
  return [=] {
    Net net;
    std::vector<ValueId> inputs = {net.Input(Bits(u), {1, 9, 11, 8}, Moved(kIn, u))};
    if (operands == 2) inputs.push_back(net.Input(Bits(u), {1, 9, 11, 8}, Moved(kOther, u)));
    return net.Take({net.Add(op, inputs, Bits(u), dims, attrs, Moved(out, u))});
  };
}

template <class T>
ValueId Filter(Net& net, bool u, std::vector<int64_t> dims, int axis, bool per_channel) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  std::vector<Q> q(per_channel ? static_cast<size_t>(dims[static_cast<size_t>(axis)]) : 1,
                   {0.004f, u ? 119 : 0});
  for (size_t i = 0; i < q.size(); ++i) q[i].scale += 0.0003f * static_cast<float>(i % 7);
  return net.Const<T>(Bits(u), dims, Noise<T>(count, 5, u ? 0 : -127, u ? 256 : 128), q, axis);
}

// CONV_2D, DEPTHWISE_CONV_2D or TRANSPOSE_CONV of [1, 9, 11, 8] to `dims`.
Build Window(Op op, bool u, bool per_channel, std::vector<int64_t> filter, int axis,
             std::vector<int64_t> dims, Attrs attrs) {
  return [=] {
    Net net;
    const ValueId x = net.Input(Bits(u), {1, 9, 11, 8}, Moved(kIn, u));
    const ValueId f =
        u ? Filter<uint8_t>(net, u, filter, axis, false) : Filter<int8_t>(net, u, filter, axis, per_channel);
    const auto channels = static_cast<size_t>(filter[static_cast<size_t>(axis)]);
    std::vector<Q> bias(per_channel ? channels : 1);
    for (size_t i = 0; i < bias.size(); ++i)
      bias[i].scale = kIn.scale * (0.004f + 0.0003f * static_cast<float>(per_channel ? i % 7 : 0));
    const ValueId b = net.Const<int32_t>(DType::kI32, {static_cast<int64_t>(channels)},
                                         Noise<int32_t>(channels, 6, -900, 900), bias);
    if (op != Op::kTransposeConv)
      return net.Take({net.Add(op, {x, f, b}, Bits(u), dims, attrs, Moved(kOut, u))});
    const ValueId shape =
        net.Const<int32_t>(DType::kI32, {4}, std::vector<int32_t>(dims.begin(), dims.end()));
    return net.Take({net.Add(op, {shape, f, x, b}, Bits(u), dims, attrs, Moved(kOut, u))});
  };
}

Build Dense(bool u, bool per_channel) {
  return [=] {
    Net net;
    const ValueId x = net.Input(Bits(u), {3, 50}, Moved(kIn, u));
    const ValueId f =
        u ? Filter<uint8_t>(net, u, {37, 50}, 0, false) : Filter<int8_t>(net, u, {37, 50}, 0, per_channel);
    const ValueId b = net.Const<int32_t>(DType::kI32, {37}, Noise<int32_t>(37, 6, -900, 900), {{2e-4f, 0}});
    return net.Take({net.Add(Op::kFullyConnected, {x, f, b}, Bits(u), {3, 37}, {}, Moved(kOut, u))});
  };
}

// f32 x i8, per row of the input 8 bits.
Build Hybrid(Op op) {
  return [=] {
    Net net;
    if (op == Op::kFullyConnected) {
      const ValueId x = net.Input(DType::kF32, {3, 50});
      const ValueId f = Filter<int8_t>(net, false, {37, 50}, 0, false);
      const ValueId b = net.Const<float>(DType::kF32, {37}, Noise<float>(37, 6, -1, 1));
      return net.Take({net.Add(op, {x, f, b}, DType::kF32, {3, 37})});
    }
    const ValueId x = net.Input(DType::kF32, {1, 9, 11, 8});
    const bool deep = op == Op::kDepthwiseConv2D;
    const ValueId f = Filter<int8_t>(
        net, false, deep ? std::vector<int64_t>{1, 3, 3, 8} : std::vector<int64_t>{16, 3, 3, 8}, deep ? 3 : 0,
        true);
    const ValueId b = net.Const<float>(DType::kF32, {deep ? 8 : 16}, Noise<float>(deep ? 8 : 16, 6, -1, 1));
    Attrs attrs = Options("padding", "SAME", "stride_h", 1, "stride_w", 1);
    if (deep) attrs.Set("depth_multiplier", 1);
    return net.Take({net.Add(op, {x, f, b}, DType::kF32, {1, 9, 11, deep ? 8 : 16}, attrs)});
  };
}

Build Reduced(bool u, bool keep, Q out) {
  return [=] {
    Net net;
    const ValueId x = net.Input(Bits(u), {1, 9, 11, 8}, Moved(kIn, u));
    const ValueId axes = net.Const<int32_t>(DType::kI32, {2}, std::vector<int32_t>{1, 2});
    std::vector<int64_t> dims = keep ? std::vector<int64_t>{1, 1, 1, 8} : std::vector<int64_t>{1, 8};
    return net.Take(
        {net.Add(Op::kMean, {x, axes}, Bits(u), dims, Options("keep_dims", keep), Moved(out, u))});
  };
}

Build Resized(bool u, bool centers) {
  return [=] {
    Net net;
    const ValueId x = net.Input(Bits(u), {1, 9, 11, 8}, Moved(kIn, u));
    const ValueId size = net.Const<int32_t>(DType::kI32, {2}, std::vector<int32_t>{18, 22});
    return net.Take({net.Add(Op::kResizeBilinear, {x, size}, Bits(u), {1, 18, 22, 8},
                             Options("half_pixel_centers", centers), Moved(kIn, u))});
  };
}

std::vector<Single> Singles() {
  std::vector<Single> all;
  for (const bool u : {false, true}) {
    const std::string t = u ? "U8" : "I8";
    for (const auto& [name, op] : {std::pair("Add", Op::kAdd), {"Sub", Op::kSub}, {"Mul", Op::kMul}})
      all.push_back({name + t, Elementwise(op, u, 2)});
    all.push_back({"AddRelu" + t, Elementwise(Op::kAdd, u, 2, Options("fused_activation_function", "RELU"))});
    all.push_back({"Logistic" + t, Elementwise(Op::kLogistic, u, 1, {}, {1, 9, 11, 8}, {1.0f / 256, -128})});
    all.push_back({"Tanh" + t, Elementwise(Op::kTanh, u, 1, {}, {1, 9, 11, 8}, {1.0f / 128, 0})});
    all.push_back({"Softmax" + t,
                   Elementwise(Op::kSoftmax, u, 1, Options("beta", 1.0), {1, 9, 11, 8}, {1.0f / 256, -128})});
    all.push_back({"LeakyRelu" + t, Elementwise(Op::kLeakyRelu, u, 1, Options("alpha", 0.2))});
    all.push_back({"Requantize" + t, Elementwise(Op::kQuantize, u, 1)});
    const Attrs pool =
        Options("padding", "SAME", "stride_h", 2, "stride_w", 2, "filter_height", 3, "filter_width", 3);
    all.push_back({"AveragePool" + t, Elementwise(Op::kAveragePool2D, u, 1, pool, {1, 5, 6, 8}, kIn)});
    all.push_back({"MaxPool" + t, Elementwise(Op::kMaxPool2D, u, 1, pool, {1, 5, 6, 8}, kIn), 0});
    const Attrs whole =
        Options("padding", "VALID", "stride_h", 1, "stride_w", 1, "filter_height", 9, "filter_width", 11);
    all.push_back({"GlobalPool" + t, Elementwise(Op::kAveragePool2D, u, 1, whole, {1, 1, 1, 8}, kIn)});
    all.push_back({"Mean" + t, Reduced(u, false, kOut)});
    all.push_back({"MeanKept" + t, Reduced(u, true, kIn)});
    all.push_back({"Resize" + t, Resized(u, false)});
    all.push_back({"ResizeCenters" + t, Resized(u, true)});
    const Attrs one = Options("padding", "SAME", "stride_h", 1, "stride_w", 1),
                two = Options("padding", "VALID", "stride_h", 2, "stride_w", 2, "fused_activation_function",
                              "RELU6");
    all.push_back({"Conv" + t, Window(Op::kConv2D, u, !u, {16, 3, 3, 8}, 0, {1, 9, 11, 16}, one)});
    all.push_back({"ConvStrided" + t, Window(Op::kConv2D, u, false, {5, 3, 2, 8}, 0, {1, 4, 5, 5}, two)});
    all.push_back({"Transposed" + t, Window(Op::kTransposeConv, u, !u, {6, 3, 3, 8}, 0, {1, 18, 22, 6},
                                            Options("padding", "SAME", "stride_h", 2, "stride_w", 2))});
    all.push_back({"FullyConnected" + t, Dense(u, false)});
    Attrs deep = one;
    deep.Set("depth_multiplier", 1);
    all.push_back(
        {"Depthwise" + t, Window(Op::kDepthwiseConv2D, u, !u, {1, 3, 3, 8}, 3, {1, 9, 11, 8}, deep)});
    deep.Set("depth_multiplier", 2);
    all.push_back(
        {"DepthwiseTwice" + t, Window(Op::kDepthwiseConv2D, u, !u, {1, 5, 5, 16}, 3, {1, 9, 11, 16}, deep)});
  }
  all.push_back({"HardSwishI8", Elementwise(Op::kHardSwish, false, 1)});
  for (const auto& [name, op] :
       {std::pair("Dense", Op::kFullyConnected), {"Conv", Op::kConv2D}, {"Depthwise", Op::kDepthwiseConv2D}})
    all.push_back({std::string("Hybrid") + name, Hybrid(op), 0, 0.02});
  return all;
}

class Ops : public ::testing::TestWithParam<Single> {};

TEST_P(Ops, AreAStepFromStock) {
  FUSEBOX_NEEDS_STOCK();
  const Single& s = GetParam();
  const auto module = s.build();
  const std::string path = fusebox::testing::TestDir() + "/op.tflite";
  ASSERT_TRUE(tflite::WriteFile(*module, path));
  const Ran ours = RunNet(s.build());
  ASSERT_EQ(ours.error, "");
  auto stock = fusebox::testing::Stock::Open(path);
  ASSERT_TRUE(stock) << stock.error().message;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < module->functions[0]->inputs.size(); ++i)
    inputs.push_back(NoiseFor(module->functions[0]->value(module->functions[0]->inputs[i]).type,
                              static_cast<uint32_t>(7 + i)));
  const auto expected = (*stock)->Invoke(inputs);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto compare = [&]<class T>(T) {
    const auto x = ours.outputs[0].data.As<T>(), y = (*expected)[0].data.As<T>();
    ASSERT_EQ(x.size(), y.size());
    double largest = 0, far = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(y[i])));
      far = std::max(far, std::abs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
    }
    EXPECT_LE(far, s.steps + s.relative * largest);
    EXPECT_GT(largest, 0);
  };
  switch (ours.outputs[0].type.dtype) {
    case DType::kF32: return compare(float{});
    case DType::kU8: return compare(uint8_t{});
    default: return compare(int8_t{});
  }
}

INSTANTIATE_TEST_SUITE_P(Xnnpack, Ops, ::testing::ValuesIn(Singles()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::xnnpack_test
