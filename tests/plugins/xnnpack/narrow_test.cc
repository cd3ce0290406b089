// SPDX-License-Identifier: Apache-2.0
// Convolutions of few channels, of which one product of XNNPACK computes several pixels.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plugins/xnnpack/net.h"

namespace fusebox::xnnpack_test {
namespace {

struct Narrow {
  int64_t height, width, channels, results, window;
  int stride = 1;
  const char* padding = "SAME";
  bool has_bias = true, half = false, pads = false;
  int dilation = 1;  // of the height
};

std::unique_ptr<Module> Convolution(const Narrow& n, int64_t batch = 2) {
  Net net;
  ValueId x = net.Input(DType::kF32, {batch, n.height, n.width, n.channels});
  int64_t height = n.height, width = n.width;
  if (n.pads) {
    const ValueId amounts = net.Const<int32_t>(DType::kI32, {4, 2}, {0, 0, 1, 2, 3, 1, 0, 0});
    height += 3, width += 4;
    x = net.Add(Op::kPad, {x, amounts}, DType::kF32, {batch, height, width, n.channels});
  }
  const std::vector<int64_t> dims = {n.results, n.window, n.window, n.channels};
  const auto count = static_cast<size_t>(n.results * n.window * n.window * n.channels);
  ValueId filter = n.half ? net.Const<uint16_t>(DType::kF16, dims, Noise<uint16_t>(count, 3, 0x3000, 0x3800))
                          : net.Const<float>(DType::kF32, dims, Noise<float>(count, 3, -1, 1));
  if (n.half) filter = net.Add(Op::kDequantize, {filter}, DType::kF32, dims);
  const ValueId bias = n.has_bias ? net.Const<float>(DType::kF32, {n.results},
                                                     Noise<float>(static_cast<size_t>(n.results), 4, -1, 1))
                                  : kNoValue;
  const auto size = [&](int64_t in, int64_t extent) {
    return std::string(n.padding) == "SAME" ? (in + n.stride - 1) / n.stride
                                            : (in - extent + n.stride) / n.stride;
  };
  const std::vector<int64_t> out = {batch, size(height, (n.window - 1) * n.dilation + 1),
                                    size(width, n.window), n.results};
  const ValueId y =
      net.Add(Op::kConv2D, {x, filter, bias}, DType::kF32, out,
              Options("padding", n.padding, "stride_h", n.stride, "stride_w", n.stride, "dilation_h_factor",
                      n.dilation, "dilation_w_factor", 1, "fused_activation_function", "RELU"));
  return net.Take({net.Add(Op::kAbs, {y}, DType::kF32, out)});
}

void ExpectNear(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  ASSERT_EQ(want.size(), 1u);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(want[0].type.shape, got[0].type.shape);
  const auto a = want[0].data.As<float>(), b = got[0].data.As<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5 * (1 + std::fabs(a[i]))) << i;
}

TEST(NarrowConvolutions, ComputeWhatTheKernelsCompute) {
  const Narrow nets[] = {
      {7, 32, 3, 1, 3},
      {5, 33, 3, 8, 3},
      {6, 13, 4, 16, 3},
      {6, 12, 4, 16, 3, 1, "VALID"},
      {9, 20, 5, 3, 5, 1, "SAME", false},
      {9, 24, 3, 4, 3, 2},
      {9, 25, 3, 4, 3, 2, "VALID"},
      {9, 24, 3, 2, 3, 3},
      {8, 24, 3, 5, 1},
      {8, 24, 3, 4, 1},
      {8, 24, 70, 1, 1, 1, "VALID", false},
      {8, 24, 3, 3, 1, 1, "SAME", true, true, true},
      {8, 24, 3, 3, 1, 2},
      {8, 16, 2, 8, 3, 1, "SAME", true, true},
      {8, 16, 2, 8, 3, 1, "VALID", true, false, true},
      {8, 16, 2, 8, 3, 1, "SAME", true, false, true},
      {9, 16, 2, 8, 3, 1, "SAME", true, false, false, 2},
      {3, 8, 2, 40, 3},
  };
  for (const Narrow& n : nets) {
    SCOPED_TRACE(std::to_string(&n - nets));
    const std::vector<Tensor> want = RunNet(Convolution(n), {}, 1, false).outputs;
    const std::string cache = FreshCache();
    for (const std::string& where : {std::string(), cache, cache}) {
      const Ran ran = RunNet(Convolution(n), where);
      EXPECT_EQ(ran.error, "");
      ExpectNear(want, ran.outputs);
    }
  }
}

// Two of other dims read one constant.
TEST(NarrowConvolutions, ShareAFilter) {
  const auto build = [] {
    Net net;
    const ValueId filter = net.Const<float>(DType::kF32, {4, 3, 3, 2}, Noise<float>(72, 3, -1, 1));
    std::vector<ValueId> results;
    for (const int64_t width : {8, 6, 5}) {
      const ValueId x = net.Input(DType::kF32, {1, 4, width, 2});
      const ValueId y = net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kF32, {1, 4, width, 4},
                                Options("padding", "SAME", "stride_h", 1, "stride_w", 1));
      results.push_back(
          net.Add(Op::kMean, {y, net.Const<int32_t>(DType::kI32, {1}, {2})}, DType::kF32, {1, 4, 4}));
    }
    return net.Take({net.Add(Op::kConcatenation, results, DType::kF32, {3, 4, 4}, Options("axis", 0))});
  };
  const std::string cache = FreshCache();
  for (const std::string& where : {std::string(), cache, cache}) {
    const Ran ran = RunNet(build(), where);
    EXPECT_EQ(ran.error, "");
    ExpectNear(RunNet(build(), {}, 1, false).outputs, ran.outputs);
  }
}

// Images of as many pixels, but other sides, and other numbers of images.
TEST(NarrowConvolutions, OfResizedImages) {
  const auto build = [](int64_t batch) {
    Net net;
    const ValueId x = net.Input(DType::kF32, {batch, 8, 16, 3});
    const ValueId filter = net.Const<float>(DType::kF32, {4, 3, 3, 3}, Noise<float>(108, 3, -1, 1));
    ValueId y = net.Add(Op::kConv2D, {x, filter, kNoValue}, DType::kF32, {batch, 8, 16, 4},
                        Options("padding", "SAME", "stride_h", 1, "stride_w", 1));
    y = net.Add(Op::kMaxPool2D, {y}, DType::kF32, {batch, 4, 8, 4},
                Options("filter_height", 2, "filter_width", 2, "stride_h", 2, "stride_w", 2));
    return net.Take(
        {net.Add(Op::kMean, {y, net.Const<int32_t>(DType::kI32, {2}, {1, 2})}, DType::kF32, {batch, 4})});
  };
  for (const int64_t declared : {int64_t{-1}, int64_t{1}}) {
    const auto open = [&](std::vector<Config::Delegate> delegates) {
      const auto model =
          Model::FromModule(build(declared), {.registry = XnnpackRegistry(), .delegates = delegates});
      return std::move(*Session::Create(*model, {.threads = 1}));
    };
    const auto ours = open({AllOnXnnpack()}), kernels = open({});
    for (const auto& dims : std::vector<std::vector<int64_t>>{
             {1, 8, 16, 3}, {1, 16, 8, 3}, {3, 8, 16, 3}, {2, 4, 32, 3}, {1, 7, 9, 3}, {1, 8, 16, 3}}) {
      const Tensor x = NoiseFor({DType::kF32, Shape(dims)}, 5);
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

}  // namespace
}  // namespace fusebox::xnnpack_test
