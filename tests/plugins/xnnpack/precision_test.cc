// SPDX-License-Identifier: Apache-2.0
// precision: f16. Where the CPU has no f16 arithmetic, results are those of f32, with a warning.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plugins/xnnpack/net.h"
#include "tests/plugins/xnnpack/said.h"

namespace fusebox::xnnpack_test {
namespace {

struct Result {
  std::vector<float> values;
  std::string warning, error;
  bool halves() const { return warning.empty(); }
};

std::unique_ptr<Session> Open(std::unique_ptr<Module> module, const char* precision, const std::string& cache,
                              std::string& error) {
  Config::Delegate delegate = AllOnXnnpack();
  delegate.options.Set("precision", precision);
  if (!cache.empty()) delegate.options.Set("weight_cache_path", cache);
  const auto model = Model::FromModule(
      std::move(module), {.registry = XnnpackRegistry(), .delegates = std::vector{std::move(delegate)}});
  if (!model) return error = model.error().message, nullptr;
  auto session = Session::Create(*model, {.threads = 1});
  if (!session) return error = session.error().message, nullptr;
  return std::move(*session);
}

// On noise of a batch.
std::vector<float> RunBatch(Session& session, int64_t batch, float factor = 1) {
  std::vector<int64_t> dims = session.inputs()[0].type.shape.dims();
  dims[0] = batch;
  const Type type{DType::kF32, Shape(dims)};
  const Tensor noise = NoiseFor(type, 7);
  std::vector<float> values(noise.data.As<float>().begin(), noise.data.As<float>().end());
  for (float& v : values) v *= factor;
  EXPECT_TRUE(session.Resize(0, type.shape));
  EXPECT_TRUE(session.SetInput(0, {type, Buffer::Of<float>(values)}));
  EXPECT_TRUE(session.Run());
  const auto output = session.output(0);
  if (!output) return {};
  return {output->data.As<float>().begin(), output->data.As<float>().end()};
}

Result RunOnce(std::unique_ptr<Module> module, const char* precision, const std::string& cache = {},
               float factor = 1) {
  const Said said;
  Result result;
  const auto session = Open(std::move(module), precision, cache, result.error);
  if (session) result.values = RunBatch(*session, 2, factor);
  if (const size_t at = said.text().find("PRECISION"); at != std::string::npos)
    result.warning = said.text().substr(at);
  return result;
}

double LargestError(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return INFINITY;
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(a[i]) - b[i]) / (1 + std::fabs(b[i])));
  return most;
}

// Convolutions of all kinds, constants of all kinds, values that several ops read.
std::unique_ptr<Module> MixedNet(int64_t batch) {
  Net net;
  const auto floats = [&](std::vector<int64_t> dims, uint32_t seed) {
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    return net.Const<float>(DType::kF32, dims, Noise<float>(static_cast<size_t>(count), seed, -0.3, 0.3));
  };
  const auto same = [](int depth) {
    return Options("padding", "SAME", "stride_h", 1, "stride_w", 1, "depth_multiplier", depth);
  };
  const std::vector<int64_t> dims = {batch, 6, 6, 8};
  const ValueId x = net.Input(DType::kF32, {batch, 6, 6, 3});
  const ValueId a =
      net.Add(Op::kConv2D, {x, floats({8, 3, 3, 3}, 1), floats({8}, 2)}, DType::kF32, dims, same(0));
  ValueId y =
      net.Add(Op::kDepthwiseConv2D, {a, floats({1, 3, 3, 8}, 3), floats({8}, 4)}, DType::kF32, dims, same(1));
  y = net.Add(Op::kPrelu, {y, floats({1, 1, 8}, 5)}, DType::kF32, dims);
  y = net.Add(Op::kAdd, {y, a}, DType::kF32, dims);
  y = net.Add(Op::kMul, {y, floats({8}, 6)}, DType::kF32, dims);
  y = net.Add(Op::kLogistic, {y}, DType::kF32, dims);
  y = net.Add(Op::kMean, {y, net.Const<int32_t>(DType::kI32, {2}, {1, 2})}, DType::kF32, {batch, 8});
  const ValueId stored = net.Const<uint16_t>(DType::kF16, {40, 8}, Noise<uint16_t>(320, 7, 0x3000, 0x3800));
  const ValueId dense = net.Add(Op::kDequantize, {stored}, DType::kF32, {40, 8});
  y = net.Add(Op::kFullyConnected, {y, dense, floats({40}, 8)}, DType::kF32, {batch, 40});
  return net.Take({y});
}

TEST(Precision, NetsInF16AreNearThoseInF32) {
  const Result whole = RunOnce(MixedNet(2), "f32"), half = RunOnce(MixedNet(2), "f16");
  ASSERT_EQ(whole.error + half.error + whole.warning, "");
  EXPECT_EQ(half.values == whole.values, !half.halves()) << half.warning;
  EXPECT_LT(LargestError(half.values, whole.values), 1e-2);
}

TEST(Precision, BatchesOfOneSessionMayDiffer) {
  std::string error;
  const auto half = Open(MixedNet(-1), "f16", {}, error), whole = Open(MixedNet(-1), "f32", {}, error);
  ASSERT_EQ(error, "");
  for (const int64_t batch : {1, 5, 2})
    EXPECT_LT(LargestError(RunBatch(*half, batch), RunBatch(*whole, batch)), 1e-2);
}

// Both in one cache: neither finds the weights of the other.
TEST(Precision, CachesKeepBothPrecisionsApart) {
  const std::string cache = FreshCache();
  const Result whole = RunOnce(MixedNet(2), "f32"), half = RunOnce(MixedNet(2), "f16");
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(RunOnce(MixedNet(2), "f16", cache).values, half.values);
    EXPECT_EQ(RunOnce(MixedNet(2), "f32", cache).values, whole.values);
  }
}

std::unique_ptr<Module> Doubled() {
  Net net;
  const ValueId x = net.Input(DType::kF32, {2, 64});
  return net.Take({net.Add(Op::kAdd, {x, x}, DType::kF32, {2, 64})});
}

TEST(Precision, LargeValuesAreInfiniteInF16) {
  const Result half = RunOnce(Doubled(), "f16", {}, 1e5f), whole = RunOnce(Doubled(), "f32", {}, 1e5f);
  ASSERT_EQ(half.values.size(), 128u);
  for (size_t i = 0; i < half.values.size(); ++i) {
    const float sum = whole.values[i];
    if (half.halves() && std::fabs(sum) >= 65520) {
      EXPECT_EQ(half.values[i], std::copysign(INFINITY, sum));
    } else {
      EXPECT_NEAR(half.values[i], sum, half.halves() ? std::fabs(sum) / 1000 : 0);
    }
  }
}

TEST(Precision, PartitionsWithBytesStayInF32WithAWarning) {
  const auto net = [] {
    Net net;
    const ValueId x = net.Input(DType::kF32, {2, 64});
    const ValueId dense =
        net.Const<int8_t>(DType::kI8, {40, 64}, Noise<int8_t>(2560, 3, -127, 128), {{0.01f}});
    return net.Take({net.Add(Op::kFullyConnected, {x, dense, kNoValue}, DType::kF32, {2, 40})});
  };
  const Result half = RunOnce(net(), "f16"), whole = RunOnce(net(), "f32");
  EXPECT_NE(half.warning.find("not all of its values and weights are floats"), std::string::npos);
  EXPECT_EQ(half.values, whole.values);
  EXPECT_EQ(whole.warning, "");
}

TEST(Precision, OtherNamesAreRefused) {
  const Result ran = RunOnce(Doubled(), "f64");
  EXPECT_NE(ran.error.find("precision"), std::string::npos) << ran.error;
}

}  // namespace
}  // namespace fusebox::xnnpack_test
