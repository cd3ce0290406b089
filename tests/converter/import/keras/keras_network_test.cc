// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops.nn and tf.nn whose parameters are operands, against their definition.
#include <gmock/gmock.h>

#include "tests/converter/import/keras/keras_functions.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const Tensor kImage = Floats({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9});

json Input() { return Graph3::Tensor("x"); }
json Constant(const json& value) {
  return {{"class_name", "__tensor__"}, {"config", {{"value", value}, {"dtype", "float32"}}}};
}

TEST(KerasNetwork, PoolsOverWindows) {
  const auto three = [](const char* function, const json& size, const json& strides, const char* padding) {
    const json config = {
        {"pool_size", size}, {"strides", strides}, {"padding", padding}, {"data_format", nullptr}};
    return Of3(function, config, {}, kImage);
  };
  ExpectNear(three("MaxPool", 2, 1, "valid"), {5, 6, 8, 9});
  ExpectNear(three("MaxPool", {2, 2}, nullptr, "same"), {5, 6, 8, 9});
  ExpectNear(three("AveragePool", {2, 1}, 1, "valid"), {2.5F, 3.5F, 4.5F, 5.5F, 6.5F, 7.5F});
  ExpectNear(
      Of3("MaxPool", {{"pool_size", 3}, {"strides", 1}, {"padding", "valid"}, {"data_format", nullptr}}, {},
          Floats({1, 4, 1}, {1, 5, 2, 3})),
      {5, 5});
  const auto two = [](const char* function, const json& size) {
    return Of2(function, {{"ksize", size}, {"strides", 1}, {"padding", "VALID"}}, kImage);
  };
  ExpectNear(two("nn.max_pool2d", 2), {5, 6, 8, 9});
  ExpectNear(two("nn.avg_pool", {1, 2, 1, 1}), {2.5F, 3.5F, 4.5F, 5.5F, 6.5F, 7.5F});
  EXPECT_THAT(two("nn.max_pool2d", {1, 2, 2, 2}).error().message,
              HasSubstr("windows over batch or channels"));
}

TEST(KerasNetwork, ConvolvesWithOperands) {
  // 10 at the top left and 1 at the bottom right of 2 x 2, into one channel.
  const json kernel = {{{{10.0}}, {{0.0}}}, {{{0.0}}, {{1.0}}}};
  const std::vector<float> want = {15, 26, 48, 59};
  const json config = {{"strides", 1}, {"padding", "valid"}, {"data_format", nullptr}, {"dilation_rate", 1}};
  ExpectNear(Of3("Conv", config, {Input(), Constant(kernel)}, kImage), want);
  ExpectNear(Of3("DepthwiseConv", config, {Input(), Constant(kernel)}, kImage), want);
  ExpectNear(Of2("nn.conv2d", {{"filters", kernel}, {"strides", {1, 1, 1, 1}}, {"padding", "VALID"}}, kImage),
             want);
  ExpectNear(Of2("nn.depthwise_conv2d", {{"filter", kernel}, {"strides", {1, 1, 1, 1}}, {"padding", "VALID"}},
                 kImage),
             want);
  const json point = {{{{2.0, -1.0}}}};
  ExpectNear(Of3("SeparableConv", config, {Input(), Constant(kernel), Constant(point)}, kImage),
             {30, -15, 52, -26, 96, -48, 118, -59});
  ExpectNear(
      Of3("Conv", {{"strides", 2}, {"padding", "same"}, {"data_format", nullptr}, {"dilation_rate", 1}},
          {Input(), Constant({{{2.0}}, {{1.0}}})}, Floats({1, 4, 1}, {1, 2, 3, 4})),
      {4, 10});
  EXPECT_THAT(Of3("Conv", config, {Input(), Constant(kernel)}, Floats({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}))
                  .error()
                  .message,
              HasSubstr("of groups"));
}

TEST(KerasNetwork, NormalizesWithOperands) {
  const Tensor x = Floats({1, 2, 2}, {-1, 2, 0.5F, 4});
  const auto value = [](double v, double mean, double variance, double scale, double shift) {
    return static_cast<float>((v - mean) / std::sqrt(variance + 0.5) * scale + shift);
  };
  ExpectNear(
      Of3("BatchNorm", {{"axis", -1}, {"epsilon", 0.5}},
          {Input(), Constant({1.0, 2.0}), Constant({2.0, 3.0}), Constant({5.0, 6.0}), Constant({7.0, 8.0})},
          x),
      {value(-1, 1, 2, 7, 5), value(2, 2, 3, 8, 6), value(0.5, 1, 2, 7, 5), value(4, 2, 3, 8, 6)});
  ExpectNear(Of2("nn.batch_normalization",
                 {{"mean", {1.0, 2.0}},
                  {"variance", {2.0, 3.0}},
                  {"offset", nullptr},
                  {"scale", {7.0, 8.0}},
                  {"variance_epsilon", 0.5}},
                 x),
             {value(-1, 1, 2, 7, 0), value(2, 2, 3, 8, 0), value(0.5, 1, 2, 7, 0), value(4, 2, 3, 8, 0)});
  // Rows have the mean 0.5 and 2.25, the variance 2.25 and 3.0625.
  ExpectNear(Of3("LayerNorm", {{"axis", -1}, {"epsilon", 0.5}, {"rms_scaling", false}},
                 {Input(), Constant({7.0, 8.0}), Constant({5.0, 6.0})}, x),
             {value(-1, 0.5, 2.25, 7, 5), value(2, 0.5, 2.25, 8, 6), value(0.5, 2.25, 3.0625, 7, 5),
              value(4, 2.25, 3.0625, 8, 6)});
  // Columns have the mean -0.25 and 3, the variance 0.5625 and 1.
  ExpectNear(Of3("LayerNorm", {{"axis", 1}, {"epsilon", 0.5}}, {Input(), Constant({7.0, 8.0})}, x),
             {value(-1, -0.25, 0.5625, 7, 0), value(2, 3, 1, 7, 0), value(0.5, -0.25, 0.5625, 8, 0),
              value(4, 3, 1, 8, 0)});
  ExpectNear(Of3("RMSNorm", {{"axis", -1}, {"epsilon", 0.5}}, {Input(), Constant({7.0, 8.0})}, x),
             {value(-1, 0, 2.5, 7, 0), value(2, 0, 2.5, 8, 0), value(0.5, 0, 8.125, 7, 0),
              value(4, 0, 8.125, 8, 0)});
}

// Keras defines the weights as the softmax of query times key by the root of the size.
TEST(KerasNetwork, AttentionOfDotProducts) {
  const Tensor q = Floats({1, 2, 1, 2}, {1, 0.5F, -2, 1});
  const auto run = [&](const json& config, const json& keywords) {
    const std::string file = TestDir() + "/attention.keras";
    WriteKeras(file,
               Graph3()
                   .Input("x", {1, 2, 1, 2})
                   .Operation("DotProductAttention", config, "y", {Input(), Input(), Input()}, keywords)
                   .Config(),
               {});
    return RunFile(file, {q});
  };
  const double products[2][2] = {{1.25, -1.5}, {-1.5, 5}};
  const auto want = [&](double scale, bool causal) {
    std::vector<float> out;
    for (int i = 0; i < 2; ++i) {
      const double first = std::exp(products[i][0] * scale);
      const double second = causal && i == 0 ? 0 : std::exp(products[i][1] * scale);
      for (int k = 0; k < 2; ++k)
        out.push_back(static_cast<float>(
            (first * Values(q)[static_cast<size_t>(k)] + second * Values(q)[static_cast<size_t>(k + 2)]) /
            (first + second)));
    }
    return out;
  };
  const json plain = {{"is_causal", false}, {"flash_attention", nullptr}, {"attn_logits_soft_cap", nullptr}};
  const json causal = {{"is_causal", true}, {"flash_attention", nullptr}, {"attn_logits_soft_cap", nullptr}};
  ExpectNear(run(plain, kNone), want(1 / std::sqrt(2.0), false));
  ExpectNear(run(plain, {{"scale", 0.25}}), want(0.25, false));
  ExpectNear(run(causal, kNone), want(1 / std::sqrt(2.0), true));
  ExpectNear(run(plain, {{"mask", {{{{true, false}, {true, true}}}}}}), want(1 / std::sqrt(2.0), true));
  EXPECT_THAT(run({{"attn_logits_soft_cap", 5.0}}, kNone).error().message, HasSubstr("attn_logits_soft_cap"));
}

TEST(KerasNetwork, ClassesAndSparseProbabilities) {
  const Tensor ids{{DType::kI32, {2, 2}}, Buffer::Of<int32_t>(std::vector<int32_t>{0, 2, 1, 1})};
  ExpectNear(
      Of3("MultiHot", {{"num_classes", 3}, {"axis", -1}, {"dtype", "float32"}, {"sparse", false}}, {}, ids),
      {1, 0, 1, 0, 1, 0});
  // Row 1 keeps 2 and 1.5, less the threshold (2 + 1.5 - 1) / 2. Row 2 keeps 5, less the threshold 5 - 1.
  ExpectNear(Of3("Sparsemax", {{"axis", -1}}, {}, Floats({2, 3}, {2, 0.1F, 1.5F, 5, 1, 1})),
             {0.75F, 0, 0.25F, 1, 0, 0});
}

}  // namespace
}  // namespace fusebox::testing
