// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/quantize.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "host/graph/npy.h"
#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A convolution, a pool and a dense layer, over 8x8 images of 4 channels.
struct Net : Rewritten {
  ValueId x = In({1, 8, 8, 4}), y;
  explicit Net(bool with_tail = false) {
    const ValueId conv = Op1(Op::kConv2D, {x, Weights({16, 3, 3, 4}), Weights({16})}, Window());
    f.nodes.back()->attrs.Set("fused_activation_function", "RELU");
    f.nodes.back()->location.name = "net/conv";
    Attrs window = Window(2);
    window.Set("filter_height", 2);
    window.Set("filter_width", 2);
    const ValueId pool = Op1(Op::kMaxPool2D, {conv}, window);
    std::vector<float> dense(2560);  // small enough for probabilities that differ
    for (size_t i = 0; i < dense.size(); ++i) dense[i] = 0.05f * std::sin(1.3f * static_cast<float>(i));
    y = Op1(Op::kFullyConnected, {pool, C({10, 256}, dense), Weights({10})});
    if (with_tail) y = Op1(Op::kSin, {y});
    y = Op1(Op::kSoftmax, {y}, With({{"beta", 1.0}}));
    f.outputs = {y};
    Sign(f);
  }

  Tensor Image(int seed) const {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::uniform_real_distribution<float> values(-1, 1);
    std::vector<float> data(256);
    for (float& v : data) v = values(random);
    return Floats({1, 8, 8, 4}, data);
  }
  // A folder with that many samples, the first dimension counting them.
  std::string Calibration(int count) const {
    const std::string dir = ::testing::TempDir() + "/calibration";
    std::filesystem::remove_all(dir);
    std::filesystem::create_directories(dir);
    std::vector<float> all;
    for (int i = 0; i < count; ++i) {
      const auto values = FloatsOf(Image(i));
      all.insert(all.end(), values.begin(), values.end());
    }
    EXPECT_TRUE(WriteNpy(dir + "/in0.npy", Floats({count, 8, 8, 4}, all)));
    return dir;
  }
  std::string Quantize(Quantization as, const std::string& calibration = {}) {
    options.quantization = as;
    options.calibration = calibration;
    return Bench::Run(QuantizeWeights);
  }
  // The largest error of the outputs over images that were not calibrated on.
  double Error(const std::vector<std::vector<float>>& was) {
    double largest = 0;
    for (int i = 0; i < 10; ++i) {
      const auto is = FloatsOf(Compute("main", {Image(100 + i)})[0]);
      for (size_t k = 0; k < is.size(); ++k)
        largest = std::max(largest, std::abs(static_cast<double>(is[k]) - was[static_cast<size_t>(i)][k]));
    }
    return largest;
  }
  std::vector<std::vector<float>> Outputs() {
    std::vector<std::vector<float>> out;
    for (int i = 0; i < 10; ++i) out.push_back(FloatsOf(Compute("main", {Image(100 + i)})[0]));
    return out;
  }
};

TEST(Quantize, Float16HalvesLargeConstants) {
  Net net;
  const auto before = net.Outputs();
  ASSERT_EQ(net.Quantize(Quantization::kFloat16), "");
  EXPECT_EQ(net.Ops(), "DEQUANTIZE CONV_2D MAX_POOL_2D DEQUANTIZE FULLY_CONNECTED SOFTMAX");
  EXPECT_EQ(net.f.value(net.f.nodes[0]->operands[0]).type.dtype, DType::kF16);
  EXPECT_EQ(net.f.value(net.f.nodes[1]->operands[2]).type.dtype, DType::kF32) << "a small bias stays";
  EXPECT_LT(net.Error(before), 2e-3);
}

TEST(Quantize, Float16LeavesWhatItCannotSay) {
  Net net;
  const ValueId w = net.f.nodes[0]->operands[1];
  std::vector<float> values(576, 1.0f);
  values[7] = 1e5f;
  net.f.value(w).data = Buffer::Of<float>(values);
  ASSERT_EQ(net.Quantize(Quantization::kFloat16), "");
  EXPECT_EQ(Count(net.f, Op::kDequantize), 1u);
  EXPECT_THAT(net.Notes(), HasSubstr("f16 cannot represent its values"));
}

TEST(Quantize, DynamicStoresWeightsByChannel) {
  Net net;
  const auto before = net.Outputs();
  ASSERT_EQ(net.Quantize(Quantization::kDynamic), "");
  EXPECT_EQ(net.Ops(), "CONV_2D MAX_POOL_2D FULLY_CONNECTED SOFTMAX");
  const Value &conv = net.f.value(net.f.nodes[0]->operands[1]),
              &dense = net.f.value(net.f.nodes[2]->operands[1]);
  EXPECT_EQ(conv.quant->scales.size(), 16u);
  EXPECT_EQ(dense.type.dtype, DType::kI8);
  EXPECT_EQ(dense.quant->scales.size(), 1u) << "one for all: what readers of before 2.11 know";
  EXPECT_TRUE(net.f.nodes[2]->attrs.b("asymmetric_quantize_inputs", false));
  EXPECT_LT(net.Error(before), 2e-2);
}

TEST(Quantize, DynamicStoresConvolutionsOfAllKinds) {
  Rewritten m;
  const ValueId x = m.In({1, 6, 6, 32});
  const ValueId conv = m.Op1(Op::kConv2D, {x, m.Weights({32, 1, 1, 32}), m.Weights({32})}, m.Window());
  Attrs window = m.Window();
  window.Set("depth_multiplier", 1);
  const ValueId deep = m.Op1(Op::kDepthwiseConv2D, {conv, m.Weights({1, 6, 6, 32}), m.Weights({32})}, window);
  m.f.outputs = {deep};
  m.Sign(m.f);
  m.options.quantization = Quantization::kDynamic;
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_EQ(m.f.value(m.f.nodes[0]->operands[1]).quant->axis, 0);
  EXPECT_EQ(m.f.value(m.f.nodes[1]->operands[1]).quant->axis, 3);
  EXPECT_EQ(m.f.value(m.f.nodes[1]->operands[1]).quant->scales.size(), 32u);
}

TEST(Quantize, DynamicLeavesSmallWeightsAndSaysSo) {
  Rewritten m;
  m.f.outputs = {m.Op1(Op::kFullyConnected, {m.In({1, 8}), m.Weights({16, 8}), m.Weights({16})})};
  m.f.nodes[0]->location.name = "net/dense";
  m.Sign(m.f);
  m.options.quantization = Quantization::kDynamic;
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_EQ(m.f.value(m.f.nodes[0]->operands[1]).type.dtype, DType::kF32);
  EXPECT_THAT(m.Notes(),
              HasSubstr("net/dense (FULLY_CONNECTED): its weights stay f32: they have 128 elements"));
}

TEST(Quantize, DynamicGathersFromBytes) {
  Rewritten m;
  const ValueId ids = m.f.AddInput(I32({4}));
  const ValueId table = m.Weights({100, 16});
  m.f.outputs = {m.Op1(Op::kGather, {table, ids}, m.With({{"axis", int64_t{0}}}))};
  m.Sign(m.f);
  const std::vector<Tensor> in = {{I32({4}), Buffer::Of<int32_t>(std::vector<int32_t>{0, 7, 99, 3})}};
  const auto was = FloatsOf(m.Compute("main", in)[0]);
  m.options.quantization = Quantization::kDynamic;
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_EQ(m.Ops(), "GATHER DEQUANTIZE");
  const auto is = FloatsOf(m.Compute("main", in)[0]);
  for (size_t i = 0; i < was.size(); ++i) EXPECT_NEAR(was[i], is[i], 0.5f * 0.75f / 127);
}

TEST(Quantize, Int8IsOfBytesBetweenFloatBorders) {
  Net net;
  const auto before = net.Outputs();
  ASSERT_EQ(net.Quantize(Quantization::kInt8, net.Calibration(8)), "");
  EXPECT_EQ(net.Ops(), "QUANTIZE CONV_2D MAX_POOL_2D FULLY_CONNECTED SOFTMAX DEQUANTIZE");
  const auto quant = [&](size_t node, size_t operand) {
    return net.f.value(net.f.nodes[node]->operands[operand]).quant;
  };
  EXPECT_EQ(quant(1, 1)->scales.size(), 16u);
  EXPECT_EQ(net.f.value(net.f.nodes[1]->operands[2]).type.dtype, DType::kI32);
  EXPECT_FLOAT_EQ(quant(1, 2)->scales[3], quant(1, 0)->scales[0] * quant(1, 1)->scales[3]);
  EXPECT_EQ(*quant(2, 0), *net.f.value(net.f.nodes[2]->results[0]).quant) << "a pool keeps the scale";
  EXPECT_THAT(quant(5, 0)->scales, ElementsAre(1.0f / 256));
  EXPECT_THAT(quant(5, 0)->zero_points, ElementsAre(-128));
  EXPECT_LT(net.Error(before), 0.05);
  ASSERT_EQ(net.report.layers.size(), 4u);
  EXPECT_EQ(net.report.layers[0].location, "net/conv");
  EXPECT_TRUE(net.report.layers[0].quantized);
  EXPECT_GT(net.report.layers[0].rms, 0);
  EXPECT_LT(net.report.layers[0].ratio, 0.03);
  EXPECT_THAT(ToText(net.report), HasSubstr("net/conv"));
}

TEST(Quantize, Int8LeavesOtherOpsFloatAndSaysSo) {
  Net net(true);
  ASSERT_EQ(net.Quantize(Quantization::kInt8, net.Calibration(4)), "");
  EXPECT_EQ(net.Ops(),
            "QUANTIZE CONV_2D MAX_POOL_2D FULLY_CONNECTED DEQUANTIZE SIN QUANTIZE SOFTMAX DEQUANTIZE");
  EXPECT_THAT(net.Notes(), HasSubstr("SIN: stays f32: no 8-bit form of SIN"));
}

// What the operand of `reader` is stored in, of values from -40 to 40.
std::shared_ptr<const Quant> OperandOf(Op reader, bool handed_out = false) {
  Rewritten m;
  const ValueId y = m.Op1(Op::kMul, {m.In({1, 4}), m.C(10)});
  const ValueId z = m.Op1(reader, {y}, reader == Op::kSoftmax ? m.With({{"beta", 1.0}}) : Attrs());
  m.f.outputs = {z};
  if (handed_out) m.f.outputs.push_back(y);
  m.Sign(m.f);
  const std::string dir = ::testing::TempDir() + "/saturated";
  std::filesystem::create_directories(dir);
  EXPECT_TRUE(WriteNpy(dir + "/i0.npy", Floats({1, 4}, {4, -4, 0, 1})));
  m.options.quantization = Quantization::kInt8;
  m.options.calibration = dir;
  EXPECT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_TRUE(m.f.nodes[1]->is(Op::kMul)) << m.Ops();
  return m.f.value(m.f.nodes[1]->results[0]).quant;
}

TEST(Quantize, Int8EndsRangesWhereTheReaderSaturates) {
  const float whole = 80.0f / 255;
  EXPECT_FLOAT_EQ(OperandOf(Op::kRelu)->scales[0], whole);
  EXPECT_FLOAT_EQ(OperandOf(Op::kLogistic)->scales[0], 2 * std::log(1023.0f) / 255);
  EXPECT_FLOAT_EQ(OperandOf(Op::kTanh)->scales[0], std::log(1023.0f) / 255);
  EXPECT_FLOAT_EQ(OperandOf(Op::kLogistic, true)->scales[0], whole) << "it is handed out too";
  const auto softmax = OperandOf(Op::kSoftmax);
  EXPECT_FLOAT_EQ(softmax->scales[0], whole);
  EXPECT_THAT(softmax->zero_points, ElementsAre(-128)) << "room above, for what is cut below";
}

TEST(Quantize, Int8JoinsScalesAndConvertsFixedOnes) {
  Rewritten m;
  const ValueId x = m.In({1, 8});
  const ValueId a = m.Op1(Op::kMul, {x, m.C({8}, {1, 2, 3, 4, 5, 6, 7, 8})}), b = m.Op1(Op::kTanh, {x});
  m.f.outputs = {m.Op1(Op::kConcatenation, {a, b}, m.With({{"axis", int64_t{1}}}))};
  m.Sign(m.f);
  const std::string dir = ::testing::TempDir() + "/joined";
  std::filesystem::create_directories(dir);
  EXPECT_TRUE(WriteNpy(dir + "/i0.npy",
                       Floats({2, 8}, {1, -1, 1, -1, 1, -1, 1, -1, .5, .5, .5, .5, .5, .5, .5, .5})));
  m.options.quantization = Quantization::kInt8;
  m.options.calibration = dir;
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_EQ(m.Ops(), "QUANTIZE MUL TANH QUANTIZE CONCATENATION DEQUANTIZE");
  const Node& join = *m.f.nodes[4];
  const auto quant = [&](ValueId v) { return *m.f.value(v).quant; };
  EXPECT_EQ(quant(join.operands[0]), quant(join.results[0]));
  EXPECT_EQ(quant(join.operands[1]), quant(join.results[0]));
  EXPECT_FLOAT_EQ(quant(join.results[0]).scales[0], 15.0f / 255) << "from -8 to 7";
}

// As a mask puts it in: other values would all be the same byte beside it.
TEST(Quantize, Int8LeavesHugeNumbersFloat) {
  Rewritten m;
  const ValueId x = m.In({1, 8}), a = m.Op1(Op::kTanh, {x});
  const ValueId b = m.Op1(Op::kAdd, {a, m.C({1, 8}, {0, 0, 0, 0, 0, 0, 0, 1e30F})});
  m.f.outputs = {b};
  m.Sign(m.f);
  const std::string dir = ::testing::TempDir() + "/huge";
  std::filesystem::create_directories(dir);
  EXPECT_TRUE(WriteNpy(dir + "/i0.npy", Floats({1, 8}, {1, -1, 1, -1, 1, -1, 1, -1})));
  m.options.quantization = Quantization::kInt8;
  m.options.calibration = dir;
  ASSERT_EQ(m.Run(QuantizeWeights), "");
  EXPECT_EQ(m.Ops(), "QUANTIZE TANH DEQUANTIZE ADD");
  EXPECT_THAT(m.Notes(), HasSubstr("ADD: stays f32: its range is too wide for 8 bits"));
}

TEST(Quantize, RefusesCalibrationThatDoesNotFit) {
  Net net;
  EXPECT_THAT(net.Quantize(Quantization::kInt8),
              HasSubstr("8-bit activations require a folder of calibration data"));
  EXPECT_THAT(net.Quantize(Quantization::kInt8, "/nowhere"), HasSubstr("no such folder of calibration data"));
  const std::string dir = net.Calibration(2);
  EXPECT_TRUE(WriteNpy(dir + "/in0.npy", Floats({2, 8, 8, 3}, std::vector<float>(384))));
  EXPECT_THAT(
      net.Quantize(Quantization::kInt8, dir),
      HasSubstr(
          "in0.npy: holds f32[2,8,8,3], the input is f32[1,8,8,4]; samples must have the input's shape"));
  const Tensor wide = {{DType::kF64, {1, 8, 8, 4}}, Buffer::Of<double>(std::vector<double>(256))};
  EXPECT_TRUE(WriteNpy(dir + "/in0.npy", wide));
  EXPECT_THAT(net.Quantize(Quantization::kInt8, dir), HasSubstr("save input values as f32"));
  std::filesystem::remove(dir + "/in0.npy");
  EXPECT_TRUE(WriteNpy(dir + "/image.npy", net.Image(1)));
  EXPECT_THAT(net.Quantize(Quantization::kInt8, dir),
              HasSubstr("has no i0.npy, in0.npy or i0.0.npy; it has image.npy"));
  EXPECT_THAT(net.Quantize(Quantization::kNone, dir), HasSubstr("requires a quantized model"));
}

TEST(Quantize, TakesNumberedFilesAndADimensionOfSamples) {
  Net net;
  const std::string dir = net.Calibration(0);
  std::filesystem::remove(dir + "/in0.npy");
  EXPECT_TRUE(WriteNpy(dir + "/i0.0.npy", net.Image(1)));
  Tensor two = net.Image(2);
  two.type.shape = Shape({1, 1, 8, 8, 4});
  EXPECT_TRUE(WriteNpy(dir + "/i0.1.npy", two));
  const auto samples = quantize::ReadCalibration(net.module, net.module.signatures[0], dir);
  ASSERT_TRUE(samples) << samples.error().message;
  ASSERT_EQ(samples->size(), 2u);
  EXPECT_EQ(FloatsOf((*samples)[1][0]), FloatsOf(net.Image(2)));
}

// A name with a typing error would be data that nobody sees.
TEST(Quantize, NamesTheCalibrationDataThatItDoesNotRead) {
  Net net;
  const std::string dir = net.Calibration(2);
  for (const char* name : {"/i0.0.npy", "/image.npy"}) EXPECT_TRUE(WriteNpy(dir + name, net.Image(1)));
  ASSERT_EQ(net.Quantize(Quantization::kInt8, dir), "");
  EXPECT_THAT(net.Notes(), HasSubstr(dir + ": unused files: i0.0.npy, image.npy; inputs of " +
                                     net.module.signatures[0].key + ": in0.npy or i0.npy or i0.0.npy.."));
  EXPECT_THAT(net.Notes(), ::testing::Not(HasSubstr("unused files: in0.npy")));
  Net clean;
  ASSERT_EQ(clean.Quantize(Quantization::kInt8, clean.Calibration(2)), "");
  EXPECT_THAT(clean.Notes(), ::testing::Not(HasSubstr("unused files")));
}

TEST(Quantize, BytesAreSymmetricAndByChannel) {
  Value w;
  w.type = F32({2, 2});
  w.data = Buffer::Of<float>(std::vector<float>{1, -2, 0, 0});
  const auto one = quantize::SymmetricBytes(w, -1), each = quantize::SymmetricBytes(w, 0);
  EXPECT_THAT(one->data.As<int8_t>(), ElementsAre(64, -127, 0, 0));
  EXPECT_EQ(one->quant->scales.size(), 1u);
  EXPECT_EQ(each->quant->scales.size(), 2u);
  EXPECT_GT(each->quant->scales[1], 0) << "of a channel of zeros, too";
  w.data = Buffer::Of<float>(std::vector<float>{1, NAN, 0, 0});
  EXPECT_FALSE(quantize::SymmetricBytes(w, 0));
}

}  // namespace
}  // namespace fusebox::converter
