// SPDX-License-Identifier: Apache-2.0
// Nets as ONNX models: ONNX Runtime computes what the host computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/graph/npy.h"
#include "host/tflite/tflite.h"
#include "tests/bench/net.h"
#include "tests/bench/net_onnx.h"
#include "tests/bench/net_peers.h"
#include "tests/bench/written_nets.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"

namespace fusebox::bench {
namespace {

using ::testing::HasSubstr;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

std::string Written(const Module& module, const std::string& name) {
  const std::string path = testing::TestDir() + "/" + name + ".tflite";
  EXPECT_TRUE(tflite::WriteFile(module, path));
  return path;
}

// The nodes of a type in a model that ONNX Runtime wrote.
int CountOf(const std::string& op, const std::string& model) {
  std::ostringstream text;
  text << std::ifstream(model, std::ios::binary).rdbuf();
  const std::string node_type = onnx::Bytes(4, op);
  int count = 0;
  for (size_t at = 0; (at = text.str().find(node_type, at)) != std::string::npos; ++at) ++count;
  return count;
}

struct Pair {
  std::unique_ptr<Session> ours;
  std::unique_ptr<Peer> theirs;
  std::string optimized;  // the model as ONNX Runtime runs it

  Status Run() const {
    FUSEBOX_TRY(ours->Run());
    return theirs->Run();
  }
};

Result<Pair> Opened(const std::string& path) {
  Pair pair;
  pair.optimized = path + ".onnx";
  FUSEBOX_ASSIGN(const auto registry, testing::Plugins({}));
  FUSEBOX_ASSIGN(pair.ours, testing::Open(path, registry));
  FUSEBOX_TRY(FillInputs(*pair.ours));
  FUSEBOX_ASSIGN(pair.theirs, OpenOnnxPeer(path, 1, pair.optimized));
  FUSEBOX_TRY(pair.theirs->Feed(*pair.ours));
  return pair;
}

Module NetOf(const std::string& name) {
  for (const WrittenNet& net : WrittenNets())
    if (net.name == name) return net.make();
  return {};
}

class NetInOnnx : public ::testing::TestWithParam<WrittenNet> {};

TEST_P(NetInOnnx, HasTheResultsOfTheHost) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  const auto pair = Opened(Written(GetParam().make(), GetParam().name));
  ASSERT_OK(pair);
  ASSERT_OK(pair->Run());
  ASSERT_OK(pair->theirs->Compare(*pair->ours));
}

INSTANTIATE_TEST_SUITE_P(Written, NetInOnnx, ::testing::ValuesIn(WrittenNets()),
                         [](const auto& info) { return std::string(info.param.name); });

class QuantizedInOnnx : public ::testing::TestWithParam<const char*> {};

Result<Pair> OpenedQuantized(const std::string& name, converter::Quantization as) {
  const auto net =
      std::ranges::find(WrittenNets(), name, [](const WrittenNet& n) { return std::string(n.name); });
  const Module module = net->make();
  const std::string path = Written(module, name), samples = testing::TestDir() + "/samples";
  std::filesystem::create_directory(samples);
  FUSEBOX_TRY(WriteNpy(samples + "/in0.npy", testing::Random(module.functions[0]->value(0).type, 1)));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, testing::Plugins({}));
  options.quantization = as;
  if (as == converter::Quantization::kInt8) options.calibration = samples;
  FUSEBOX_ASSIGN(const auto converted, testing::Convert(path, options, "quantized"));
  return Opened(converted.path);
}

TEST_P(QuantizedInOnnx, ComputesIn8Bits) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  const auto pair = OpenedQuantized(GetParam(), converter::Quantization::kInt8);
  ASSERT_OK(pair);
  ASSERT_OK(pair->Run());
  ASSERT_OK(pair->theirs->Compare(*pair->ours));
  EXPECT_GT(CountOf("QLinearConv", pair->optimized), 0);
  for (const char* const op : {"Conv", "FusedConv", "Gemm", "MatMul"})
    EXPECT_EQ(CountOf(op, pair->optimized), 0) << op;
}

TEST_P(QuantizedInOnnx, QuantizesFullyConnectedAtRunTime) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  const auto pair = OpenedQuantized(GetParam(), converter::Quantization::kDynamic);
  ASSERT_OK(pair);
  ASSERT_OK(pair->Run());
  ASSERT_OK(pair->theirs->Compare(*pair->ours));
  EXPECT_GT(CountOf("DynamicQuantizeMatMul", pair->optimized), 0);
}

INSTANTIATE_TEST_SUITE_P(Written, QuantizedInOnnx, ::testing::Values("letters", "mobile"),
                         [](const auto& info) { return std::string(info.param); });

TEST(NetsInOnnx, TransposeNoImages) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  for (const auto& [name, make] : WrittenNets()) {
    if (std::string(name) == "mobilebert") continue;  // attention transposes its heads
    const auto pair = Opened(Written(make(), name));
    ASSERT_OK(pair);
    EXPECT_EQ(CountOf("Transpose", pair->optimized), 0) << name;
  }
}

// The scale allows results up to 25.5.
TEST(NetsInOnnx, ClipAnActivationWithinTheScale) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  const auto quantized = [&](Op op, ValueId x, float scale, const Attrs& attrs) {
    const ValueId y =
        f.AddNode(op, op == Op::kAdd ? ValueIds{x, x} : ValueIds{x}, {{DType::kI8, {1, 64}}}, attrs)
            .results[0];
    auto quant = std::make_shared<Quant>();
    quant->scales = std::vector<float>{scale};
    quant->zero_points = std::vector<int64_t>{op == Op::kAdd ? -128 : 0};
    f.value(y).quant = std::move(quant);
    return y;
  };
  const ValueId x = net.Node(Op::kMul, {net.Input(DType::kF32, {1, 64}, "x"), net.Scalar(8)}, {1, 64});
  Attrs relu6;
  relu6.Set("fused_activation_function", "RELU6");
  const ValueId sum = quantized(Op::kAdd, quantized(Op::kQuantize, x, 0.0625F, {}), 0.1F, relu6);
  f.outputs = {net.Node(Op::kDequantize, {sum}, {1, 64})};
  const auto pair = Opened(Written(module, "clip"));
  ASSERT_OK(pair);
  ASSERT_OK(pair->Run());
  ASSERT_OK(pair->theirs->Compare(*pair->ours));
}

TEST(NetsInOnnx, OfOtherInputsDiffer) {
  FUSEBOX_NEEDS_PEER("libonnxruntime.so");
  const auto pair = Opened(Written(NetOf("letters"), "letters"));
  ASSERT_OK(pair);
  const auto bytes = pair->ours->InputData(0);
  ASSERT_OK(bytes);
  std::ranges::fill(*bytes, std::byte{0});
  ASSERT_OK(pair->Run());
  const Status same = pair->theirs->Compare(*pair->ours);
  ASSERT_FALSE(same);
  EXPECT_THAT(same.error().message, HasSubstr("output 0: outputs differ by up to 0."));
}

TEST(NetsInOnnx, NamesAnOpWithoutTranslation) {
  Module module;
  Function& f = module.Add("main");
  Net net(f);
  const ValueId x = net.Input(DType::kF32, {1, 4}, "x");
  f.outputs = {net.Node(Op::kCumsum, {x, net.Integers({1})}, {1, 4})};
  const auto translated = ToOnnx(f);
  ASSERT_FALSE(translated);
  EXPECT_EQ(translated.error().message, "not translated: CUMSUM");
}

}  // namespace
}  // namespace fusebox::bench
