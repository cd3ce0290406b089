// SPDX-License-Identifier: Apache-2.0
// ConvLSTM layers of Keras files beside TensorFlow.js, and their loops in stock TFLite.
#include <gtest/gtest.h>

#include <cmath>

#include "host/tflite/tflite.h"
#include "tests/peers/tfjs.h"
#include "tests/testing/conv_lstm.h"
#include "tests/testing/models/conv_lstm.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

Result<Written> ConvertConvLstm(const KerasFixture& model, converter::Composites composites) {
  const std::string file = TestDir() + "/model.h5";
  WriteH5(file, model);
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins());
  options.composites = composites;
  return Convert(file, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

class ConvLstmLoop : public ::testing::TestWithParam<ConvLstmForm> {};

TEST_P(ConvLstmLoop, RunsInStockTflite) {
  FUSEBOX_NEEDS_STOCK();
  const ConvLstm& layer = GetParam().layer;
  const KerasCase one = ConvLstmCase("", layer);
  const auto written = ConvertConvLstm(one.model, converter::Composites::kInline);
  ASSERT_OK(written);
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).at("WHILE"), 1);
  const auto stock = Stock::Open(written->path);
  ASSERT_OK(stock);
  const Tensors inputs = ConvLstmInputs(layer, 5);
  const auto got = (*stock)->Invoke(inputs);
  ASSERT_OK(got);
  EXPECT_EQ(Difference(*got, ComputeConvLstm(layer, one.model, inputs, ConvLstmMask(layer)), 1e-5, 1e-5), "");
}

INSTANTIATE_TEST_SUITE_P(Forms, ConvLstmLoop, ::testing::ValuesIn(ConvLstmForms()),
                         [](const auto& info) { return info.param.name; });

// Loops of SavedModels, with a batch that only a run knows.
TEST(ConvLstmOfSavedModels, RunInStockTfliteAsLoops) {
  FUSEBOX_NEEDS_STOCK();
  for (const test_models::ConvLstmOptions& layer :
       {test_models::ConvLstmOptions{.return_sequences = true, .return_state = true},
        test_models::ConvLstmOptions{.go_backwards = true, .hard_sigmoid = true, .keras2 = true},
        test_models::ConvLstmOptions{.size = {7}, .kernel = {3}, .return_sequences = true}}) {
    const std::string dir = TestDir() + "/conv_lstm";
    ASSERT_OK(test_models::WriteConvLstm(dir, 3, layer));
    converter::Options options;
    options.registry = *Plugins();
    options.composites = converter::Composites::kInline;
    const auto written = Convert(dir, options, "loop");
    ASSERT_OK(written);
    const auto ours = Open(written->path, *Plugins());
    ASSERT_OK(ours);
    const auto stock = Stock::Open(written->path);
    ASSERT_OK(stock);
    const Tensors inputs = RandomInputs(**ours, 5);
    const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ(Difference(*a, *b, 1e-6, 1e-5), "");
  }
}

// TensorFlow.js has ConvLSTM2D only, without masks; it rejects initial states that are channels first.
TEST(ConvLstmLayers, AgreeWithTfjs) {
  FUSEBOX_NEEDS_TFJS();
  std::vector<KerasModel> models;
  std::vector<std::string> names;
  std::vector<Tensors> ours;
  for (const ConvLstmForm& form : ConvLstmForms()) {
    const bool states_first = form.layer.states && form.layer.channels_first;
    if (form.layer.size.size() != 2 || form.layer.mask > 0 || states_first) continue;
    const KerasCase one = ConvLstmCase("", form.layer);
    const Tensors inputs = ConvLstmInputs(form.layer, 5);
    for (const auto composites : {converter::Composites::kInline, converter::Composites::kFuse}) {
      const auto written = ConvertConvLstm(one.model, composites);
      ASSERT_OK(written);
      const auto session = Open(written->path, *Plugins());
      ASSERT_OK(session);
      auto outputs = Invoke(**session, inputs);
      ASSERT_OK(outputs);
      auto model = ReadKeras(TestDir() + "/model.h5", inputs);
      ASSERT_OK(model);
      names.push_back(form.name + (composites == converter::Composites::kFuse ? ", fused" : ", loop"));
      models.push_back(*std::move(model));
      ours.push_back(*std::move(outputs));
    }
  }
  const auto theirs = RunTfjs(models);
  ASSERT_OK(theirs);
  for (size_t i = 0; i < names.size(); ++i) {
    const auto& result = (*theirs)[i];
    if (!result) ADD_FAILURE() << names[i] << ": " << result.error().message;
    else EXPECT_EQ(Difference(ours[i], *result, 1e-5, 1e-4), "") << names[i];
  }
}

// The model of Keras' example of next-frame prediction, small: kernels of 5, 3 and 1, batch normalization
// between the layers, and a convolution over time and space.
class NextFrames {
 public:
  static constexpr int64_t kRows = 2, kSteps = 4, kSize = 9, kFilters = 12;

  NextFrames() {
    for (const int64_t kernel : kKernels) {
      const std::string number = std::to_string(kernel);
      Add("ConvLSTM2D", ConvLstmConfig(LayerOf(kernel)), "conv_lstm" + number,
          ConvLstmWeights(LayerOf(kernel)));
      if (kernel == 1) break;
      const std::vector<int64_t> each = {kFilters};
      Add("BatchNormalization", {{"axis", {4}}, {"epsilon", kEpsilon}}, "norm" + number,
          {{"gamma", each}, {"beta", each}, {"moving_mean", each}, {"moving_variance", each}});
    }
    Add("Conv3D",
        {{"filters", 1},
         {"kernel_size", {3, 3, 3}},
         {"strides", {1, 1, 1}},
         {"dilation_rate", {1, 1, 1}},
         {"padding", "same"},
         {"data_format", "channels_last"},
         {"activation", "sigmoid"},
         {"use_bias", true}},
        "frames", {{"kernel", {3, 3, 3, kFilters, 1}}, {"bias", {1}}});
  }

  static Shape InputShape() { return {kRows, kSteps, kSize, kSize, 1}; }
  KerasFixture Fixture() const {
    return {SequentialConfig({kRows, kSteps, kSize, kSize, 1}, layers_), weights_};
  }
  Tensor Compute(Tensor x) const {
    size_t at = 0;
    for (const int64_t kernel : kKernels) {
      x = ComputeConvLstm(LayerOf(kernel), {{}, {weights_[at++]}}, {x})[0];
      if (kernel > 1) x = Normalized(x, weights_[at++].second);
    }
    return Frames(x, weights_[at].second);
  }

 private:
  static constexpr int64_t kKernels[] = {5, 3, 1};
  static constexpr double kEpsilon = 0.001;
  using Weights = std::vector<KerasWeight>;

  static ConvLstm LayerOf(int64_t kernel) {
    return {.size = {kSize, kSize},
            .channels = kernel == 5 ? 1 : kFilters,
            .filters = kFilters,
            .batch = kRows,
            .steps = kSteps,
            .kernel = {kernel, kernel},
            .activation = "relu",
            .recurrent_activation = "sigmoid"};
  }

  // Sums of many products, repeated over steps, stay small.
  void Add(const std::string& class_name, const nlohmann::json& config, const std::string& name,
           const WeightShapes& shapes) {
    layers_.push_back(LayerEntry(class_name, config, name));
    Weights& weights = weights_.emplace_back(name, Weights()).second;
    for (const auto& [weight, shape] : shapes) {
      weights.push_back(RandomWeight(weight, shape));
      if (shape.size() == 1) continue;
      std::vector<float> values = ValuesOf(weights.back().value);
      for (float& value : values) value /= 16;
      weights.back().value.data = Buffer::Of<float>(values);
    }
  }

  static std::vector<float> ValuesOf(const Tensor& tensor) {
    const auto values = tensor.data.As<float>();
    return {values.begin(), values.end()};
  }

  static Tensor Normalized(const Tensor& x, const Weights& weights) {
    std::vector<float> values = ValuesOf(x);
    const auto gamma = ValuesOf(weights[0].value), beta = ValuesOf(weights[1].value),
               mean = ValuesOf(weights[2].value), variance = ValuesOf(weights[3].value);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t k = i % kFilters;
      const double scale =
          static_cast<double>(gamma[k]) / std::sqrt(static_cast<double>(variance[k]) + kEpsilon);
      values[i] = static_cast<float>((static_cast<double>(values[i]) - static_cast<double>(mean[k])) * scale +
                                     static_cast<double>(beta[k]));
    }
    return Floats(x.type.shape, values);
  }

  static Tensor Frames(const Tensor& x, const Weights& weights) {
    const auto values = ValuesOf(x), kernel = ValuesOf(weights[0].value), bias = ValuesOf(weights[1].value);
    std::vector<float> frames;
    for (int64_t i = 0; i < kRows * kSteps * kSize * kSize; ++i) {
      const int64_t row = i / (kSteps * kSize * kSize), t = i / (kSize * kSize) % kSteps,
                    h = i / kSize % kSize, w = i % kSize;
      double sum = static_cast<double>(bias[0]);
      for (int64_t tap = 0; tap < 27; ++tap) {
        const int64_t in_t = t + tap / 9 - 1, in_h = h + tap / 3 % 3 - 1, in_w = w + tap % 3 - 1;
        if (in_t < 0 || in_t >= kSteps || in_h < 0 || in_h >= kSize || in_w < 0 || in_w >= kSize) continue;
        const int64_t from = ((row * kSteps + in_t) * kSize + in_h) * kSize + in_w;
        for (int64_t k = 0; k < kFilters; ++k)
          sum += static_cast<double>(values[static_cast<size_t>(from * kFilters + k)]) *
                 static_cast<double>(kernel[static_cast<size_t>(tap * kFilters + k)]);
      }
      frames.push_back(static_cast<float>(1 / (1 + std::exp(-sum))));
    }
    return Floats(InputShape(), frames);
  }

  nlohmann::json layers_ = nlohmann::json::array();
  KerasWeights weights_;
};

TEST(ConvLstmStack, PredictsFramesAsDefinedAndInStockTflite) {
  FUSEBOX_NEEDS_STOCK();
  const NextFrames model;
  const Tensors inputs = {Random({DType::kF32, NextFrames::InputShape()}, 5)};
  const Tensor want = model.Compute(inputs[0]);
  for (const auto composites : {converter::Composites::kFuse, converter::Composites::kInline}) {
    const auto written = ConvertConvLstm(model.Fixture(), composites);
    ASSERT_OK(written);
    const bool fused = composites == converter::Composites::kFuse;
    const auto module = tflite::ReadFile(written->path);
    ASSERT_OK(module);
    EXPECT_EQ(OpsOf(**module)["fusebox.conv_lstm"], fused ? 3 : 0);
    const auto session = Open(written->path, *Plugins());
    ASSERT_OK(session);
    const auto ours = Invoke(**session, inputs);
    ASSERT_OK(ours);
    EXPECT_EQ(Difference(*ours, {want}, 1e-5, 1e-5), "") << written->path;
    if (fused) continue;
    const auto stock = Stock::Open(written->path);
    ASSERT_OK(stock);
    const auto theirs = (*stock)->Invoke(inputs);
    ASSERT_OK(theirs);
    EXPECT_EQ(Difference(*theirs, {want}, 1e-5, 1e-5), "");
  }
}

}  // namespace
}  // namespace fusebox::testing
