// SPDX-License-Identifier: Apache-2.0
// Choices for speed. Kernels run a node if their estimate is lower than the estimate of XNNPACK. The plugin
// defines some ops by other ops of XNNPACK.
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/math/simd/cpu.h"
#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

void ExpectNear(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  ASSERT_EQ(want.size(), 1u);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(want[0].type.shape, got[0].type.shape);
  const auto a = want[0].data.As<float>(), b = got[0].data.As<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4 * (1 + std::fabs(a[i]))) << i;
}

std::unique_ptr<Module> Depthwise(int64_t window, int64_t channels = 16) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 9, 11, channels});
  const auto count = static_cast<size_t>(window * window * channels);
  const ValueId filter =
      net.Const<float>(DType::kF32, {1, window, window, channels}, Noise<float>(count, 3, -1, 1));
  const ValueId bias =
      net.Const<float>(DType::kF32, {channels}, Noise<float>(static_cast<size_t>(channels), 4, -1, 1));
  return net.Take({net.Add(Op::kDepthwiseConv2D, {x, filter, bias}, DType::kF32, {1, 9, 11, channels},
                           Options("padding", "SAME", "stride_h", 1, "stride_w", 1, "depth_multiplier", 1))});
}

TEST(Choices, LargeDepthwiseWindowsComputeTheSame) {
  for (const int64_t channels : {1, 3, 4, 16}) {
    const Ran ran = RunNet(Depthwise(7, channels));
    EXPECT_EQ(ran.error, "");
    ExpectNear(RunNet(Depthwise(7, channels), {}, 1, false).outputs, ran.outputs);
  }
}

// Returns the rows of a model with other options than RunNet's.
std::vector<Placement> Placed(std::unique_ptr<Module> module, const char* placement) {
  Config::Delegate delegate{"xnnpack"};
  delegate.options.Set("placement", placement);
  const auto model =
      Model::FromModule(std::move(module), {.registry = XnnpackRegistry(), .delegates = {{delegate}}});
  return model ? (*model)->placements() : std::vector<Placement>{};
}

// Only estimates decide, and only by default.
TEST(Choices, NodesRunWhereTheEstimateIsLower) {
#if defined(__x86_64__)
  if (!FUSEBOX_CPU_HAS(AVX2)) GTEST_SKIP() << "no estimates for this instruction set";
  const auto rows = Placed(Depthwise(7, 16), "cost");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].runner, "fusebox.cpu");  // XNNPACK computes a product for each channel
  EXPECT_NE(rows[0].why.find("xnnpack: COST: estimates "), std::string::npos) << rows[0].why;
#else
  GTEST_SKIP() << "no estimates for this instruction set";
#endif
}

TEST(Choices, AllNodesRunOnXnnpackIfAskedFor) {
  const auto rows = Placed(Depthwise(3, 16), "all");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].runner, "xnnpack (partition 0)") << rows[0].why;
  EXPECT_EQ(rows[0].why, "");
}

// 80 pixels for each of eight results of one channel, as keyword spotting nets have.
std::unique_ptr<Module> Spectrogram(bool quantized) {
  Net net;
  const DType type = quantized ? DType::kI8 : DType::kF32;
  const Q in{quantized ? 0.05f : 0, 3}, out{quantized ? 0.2f : 0, -5}, weight{quantized ? 0.01f : 0},
      sum{quantized ? 0.0005f : 0};
  const ValueId x = net.Input(type, {1, 49, 40, 1}, in);
  const ValueId filter =
      quantized ? net.Const<int8_t>(type, {1, 10, 8, 8}, Noise<int8_t>(640, 3, -127, 128), {weight}, 3)
                : net.Const<float>(type, {1, 10, 8, 8}, Noise<float>(640, 3, -1, 1));
  const ValueId bias = quantized
                           ? net.Const<int32_t>(DType::kI32, {8}, Noise<int32_t>(8, 4, -900, 900), {sum})
                           : net.Const<float>(type, {8}, Noise<float>(8, 4, -1, 1));
  return net.Take({net.Add(Op::kDepthwiseConv2D, {x, filter, bias}, type, {1, 25, 20, 8},
                           Options("padding", "SAME", "stride_h", 2, "stride_w", 2, "depth_multiplier", 8,
                                   "fused_activation_function", "RELU"),
                           out)});
}

TEST(Choices, LargeWindowsOfASpectrogramAreDelegated) {
  const Ran floats = RunNet(Spectrogram(false));
  EXPECT_EQ(floats.error, "");
  ExpectNear(RunNet(Spectrogram(false), {}, 1, false).outputs, floats.outputs);
  const Ran bytes = RunNet(Spectrogram(true)), kernels = RunNet(Spectrogram(true), {}, 1, false);
  EXPECT_EQ(bytes.error, "");
  ASSERT_EQ(bytes.outputs.size(), 1u);
  const auto a = bytes.outputs[0].data.As<int8_t>(), b = kernels.outputs[0].data.As<int8_t>();
  ASSERT_EQ(a.size(), b.size());
  EXPECT_NE(std::count_if(a.begin(), a.end(), [](int8_t v) { return v > -5; }), 0);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1) << i;
}

// A constant of bytes behind a DEQUANTIZE.
ValueId Stored(Net& net, std::vector<int64_t> dims, int axis, uint32_t seed) {
  size_t count = 1;
  for (const int64_t d : dims) count *= static_cast<size_t>(d);
  std::vector<Q> scales;
  for (int64_t i = 0; axis >= 0 && i < dims[static_cast<size_t>(axis)]; ++i)
    scales.push_back({0.01f + 0.001f * static_cast<float>(i), i - 2});
  if (axis < 0) scales = {{0.02f, 7}};
  const ValueId bytes =
      net.Const<int8_t>(DType::kI8, dims, Noise<int8_t>(count, seed, -128, 128), scales, std::max(axis, 0));
  return net.Add(Op::kDequantize, {bytes}, DType::kF32, dims);
}

// Stored as bytes, computed in floats: by kernels and by XNNPACK the same, also from the cache.
std::unique_ptr<Module> StoredWeights(int axis) {
  Net net;
  const ValueId x = net.Input(DType::kF32, {1, 6, 5, 3});
  const Attrs same = Options("padding", "SAME", "stride_h", 1, "stride_w", 1);
  ValueId y =
      net.Add(Op::kConv2D, {x, Stored(net, {8, 3, 3, 3}, axis < 0 ? -1 : axis, 1), Stored(net, {8}, -1, 2)},
              DType::kF32, {1, 6, 5, 8}, same);
  y = net.Add(Op::kPrelu, {y, Stored(net, {1, 1, 8}, axis < 0 ? -1 : 2, 3)}, DType::kF32, {1, 6, 5, 8});
  y = net.Add(Op::kDepthwiseConv2D, {y, Stored(net, {1, 3, 3, 8}, axis < 0 ? -1 : 3, 4), kNoValue},
              DType::kF32, {1, 6, 5, 8},
              Options("padding", "SAME", "stride_h", 1, "stride_w", 1, "depth_multiplier", 1));
  y = net.Add(Op::kMul, {y, Stored(net, {8}, -1, 5)}, DType::kF32, {1, 6, 5, 8});
  y = net.Add(Op::kFullyConnected, {y, Stored(net, {4, 240}, axis < 0 ? -1 : 0, 6), kNoValue}, DType::kF32,
              {1, 4});
  return net.Take({y});
}

TEST(Choices, WeightsThatAreStoredAsBytesAreUnpacked) {
  for (const int axis : {-1, 0, 3}) {
    const std::vector<Tensor> want = RunNet(StoredWeights(axis), {}, 1, false).outputs;
    const std::string cache = FreshCache();
    for (const std::string& where : {std::string(), cache, cache}) {
      const Ran ran = RunNet(StoredWeights(axis), where);
      EXPECT_EQ(ran.error, "");
      ExpectNear(want, ran.outputs);
    }
  }
}

struct Narrow {
  std::vector<int64_t> input, output;
  int64_t length;
  bool has_bias = true, keeps_dims = false, half = true;
  const char* activation = "NONE";
};

std::unique_ptr<Module> FullyConnected(const Narrow& n) {
  Net net;
  const int64_t columns = n.output.back();
  const auto count = static_cast<size_t>(columns * n.length);
  const ValueId x = net.Input(DType::kF32, n.input);
  const ValueId filter =
      n.half
          ? net.Const<uint16_t>(DType::kF16, {columns, n.length}, Noise<uint16_t>(count, 3, 0x3000, 0x3800))
          : net.Const<float>(DType::kF32, {columns, n.length}, Noise<float>(count, 3, -1, 1));
  const ValueId weights =
      n.half ? net.Add(Op::kDequantize, {filter}, DType::kF32, {columns, n.length}) : filter;
  const ValueId bias = n.has_bias ? net.Const<float>(DType::kF32, {columns},
                                                     Noise<float>(static_cast<size_t>(columns), 4, -1, 1))
                                  : kNoValue;
  return net.Take(
      {net.Add(Op::kFullyConnected, {x, weights, bias}, DType::kF32, n.output,
               Options("keep_num_dims", n.keeps_dims, "fused_activation_function", n.activation))});
}

// Products of few columns are convolutions of one pixel, which XNNPACK computes with wider kernels.
TEST(Choices, ProductsOfFewColumnsComputeTheSame) {
  const Narrow nets[] = {
      {{40, 33}, {40, 17}, 33, false},
      {{40, 33}, {40, 31}, 33, true, false, true, "RELU6"},
      {{1, 2048}, {1, 10}, 2048},
      {{-1, 2048}, {-1, 10}, 2048},
      {{5, 7, 129}, {5, 7, 16}, 129, true, true, true, "RELU"},
      {{-1, 7, 200}, {-1, 7, 16}, 200, true, true},
      {{2, 6, 6, 60}, {8, 12}, 540},
      {{1, 8, 5, 40}, {1, 8, 5, 21}, 40, true, true},
      {{64, 20}, {64, 24}, 20},
      {{3, 5}, {3, 16}, 5, true, false, false},
  };
  for (const Narrow& n : nets) {
    const std::vector<Tensor> want = RunNet(FullyConnected(n), {}, 1, false).outputs;
    const std::string cache = FreshCache();
    for (const std::string& where : {std::string(), cache, cache}) {
      const Ran ran = RunNet(FullyConnected(n), where);
      EXPECT_EQ(ran.error, "");
      ExpectNear(want, ran.outputs);
    }
  }
}

// A batch that changes within a session.
TEST(Choices, ProductsOfFewColumnsAreReshaped) {
  for (const int64_t declared : {int64_t{-1}, int64_t{2}}) {
    const Narrow net{{declared, 600}, {declared, 12}, 600};
    const auto open = [&](std::vector<Config::Delegate> delegates) {
      const auto model =
          Model::FromModule(FullyConnected(net), {.registry = XnnpackRegistry(), .delegates = delegates});
      return std::move(*Session::Create(*model, {.threads = 1}));
    };
    const auto ours = open({AllOnXnnpack()}), kernels = open({});
    for (const int64_t batch : {3, 1, 17}) {
      const Tensor x = NoiseFor({DType::kF32, Shape({batch, 600})}, 5);
      std::vector<Tensor> results;
      for (Session* session : {kernels.get(), ours.get()}) {
        ASSERT_TRUE(session->Resize(0, x.type.shape));
        ASSERT_TRUE(session->SetInput(0, x));
        ASSERT_TRUE(session->Run());
        const auto output = session->output(0);
        results.push_back({output->type, Buffer::Copy(output->data.bytes())});
      }
      EXPECT_TRUE(ours->placements()[0].runner.starts_with("xnnpack")) << ours->placements()[0].why;
      ExpectNear({results[0]}, {results[1]});
    }
  }
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

// The bounds of a LOGISTIC's operand join the op before it, unless another op reads the operand.
TEST(Choices, BoundsOfALogisticLeaveItsOperandToOtherReaders) {
  const std::vector<float> factors = {1e30f, -1e30f, 1, -1, 500, -500};
  for (const bool shared : {false, true}) {
    Net net;
    const ValueId x = net.Input(DType::kF32, {2, 6});
    const ValueId product =
        net.Add(Op::kMul, {x, net.Const<float>(DType::kF32, {6}, factors)}, DType::kF32, {2, 6});
    std::vector<ValueId> outputs = {net.Add(Op::kLogistic, {product}, DType::kF32, {2, 6})};
    if (shared) outputs.push_back(net.Add(Op::kNeg, {product}, DType::kF32, {2, 6}));
    const Ran ran = RunNet(net.Take(outputs));
    EXPECT_EQ(ran.error, "");
    ASSERT_EQ(ran.outputs.size(), outputs.size());
    const Tensor noise = NoiseFor({DType::kF32, Shape({2, 6})}, 7);
    for (size_t i = 0; i < 12; ++i) {
      const float operand = noise.data.As<float>()[i] * factors[i % 6];
      EXPECT_NEAR(ran.outputs[0].data.As<float>()[i], 1 / (1 + std::exp(-operand)), 1e-6) << i;
      if (!shared) continue;
      EXPECT_EQ(ran.outputs[1].data.As<float>()[i], -operand) << i;
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
