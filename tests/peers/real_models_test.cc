// SPDX-License-Identifier: Apache-2.0
// Real SavedModels, through our host, stock TFLite and TensorFlow.js.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/tflite/tflite.h"
#include "tests/peers/tfjs.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

constexpr char kSeries[] = "savedmodel/iteam1__predict-series-data-with-RNN/lstm_model";
constexpr char kGenreLstm[] = "savedmodel/legobridge__movie-genre-classification/models/lstm_model";
constexpr char kGenreDense[] = "savedmodel/legobridge__movie-genre-classification/models/nn_model";

Result<std::vector<KerasLayer>> Stack(const std::string& dir,
                                      std::vector<std::pair<KerasLayer, std::vector<std::string>>> layers) {
  std::vector<KerasLayer> out;
  for (auto& [layer, keys] : layers) {
    FUSEBOX_ASSIGN(layer.weights, Weights(dir, keys));
    out.push_back(std::move(layer));
  }
  return out;
}

std::vector<std::string> Dense(int layer) {
  const std::string prefix = "layer_with_weights-" + std::to_string(layer) + "/";
  return {prefix + "kernel/.ATTRIBUTES", prefix + "bias/.ATTRIBUTES"};
}

nlohmann::json LstmConfig() {
  return {
      {"units", 64}, {"activation", "tanh"}, {"recurrentActivation", "sigmoid"}, {"returnSequences", false}};
}

Result<std::vector<KerasLayer>> SeriesLayers(const std::string& dir) {
  nlohmann::json lstm = LstmConfig();
  lstm["inputShape"] = {5, 1};
  return Stack(dir, {{{"lstm", lstm, {}},
                      {"trainable_variables/0/.A", "trainable_variables/1/.A", "trainable_variables/2/.A"}},
                     {{"dense", {{"units", 32}, {"activation", "relu"}}, {}}, Dense(1)},
                     {{"dense", {{"units", 32}, {"activation", "relu"}}, {}}, Dense(2)},
                     {{"dense", {{"units", 1}}, {}}, Dense(3)}});
}

Result<std::vector<KerasLayer>> GenreLstmLayers(const std::string& dir) {
  return Stack(dir, {{{"embedding", {{"inputDim", 512}, {"outputDim", 32}, {"inputShape", {32}}}, {}},
                      {"layer_with_weights-0/embeddings/.ATTRIBUTES"}},
                     {{"lstm", LstmConfig(), {}}, {"variables/1/.A", "variables/2/.A", "variables/3/.A"}},
                     {{"dense", {{"units", 6}, {"activation", "softmax"}}, {}}, Dense(2)}});
}

Result<std::vector<KerasLayer>> GenreDenseLayers(const std::string& dir) {
  std::vector<std::pair<KerasLayer, std::vector<std::string>>> layers;
  const int units[] = {128, 256, 256, 128, 6};
  for (int i = 0; i < 5; ++i) {
    nlohmann::json config = {{"units", units[i]}, {"activation", i == 4 ? "softmax" : "linear"}};
    if (i == 0) config["inputShape"] = {32};
    layers.push_back({{"dense", config, {}}, Dense(i)});
  }
  return Stack(dir, std::move(layers));
}

// Embedding indices of 0 to 511, small counts for the dense model, numbers of [-1, 1) for the series.
Tensor InputOf(const std::string& name, const Type& type, uint64_t seed) {
  Tensor input = Random(type, seed);
  if (name == kSeries) return input;
  std::vector<float> words(input.data.size() / 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<float>((i * 131 + seed * 977) % 512);
  if (type.dtype == DType::kF32) return {input.type, Buffer::Of<float>(words)};
  const std::vector<int32_t> whole(words.begin(), words.end());
  return {input.type, Buffer::Of<int32_t>(whole)};
}

struct RealModel {
  const char* name;
  const char* path;
  Result<std::vector<KerasLayer>> (*layers)(const std::string& dir);
  size_t weight_bytes;  // of its layers, without the optimizer's
  bool lstm;
};
const RealModel kModels[] = {
    {"series_lstm", kSeries, SeriesLayers, 4 * (256 * (1 + 64 + 1) + 64 * 32 + 32 + 32 * 32 + 32 + 32 + 1),
     true},
    {"genre_lstm", kGenreLstm, GenreLstmLayers, 4 * (512 * 32 + 256 * (32 + 64 + 1) + 64 * 6 + 6), true},
    {"genre_dense", kGenreDense, GenreDenseLayers,
     4 * (33 * 128 + 129 * 256 + 257 * 256 + 257 * 128 + 129 * 6), false}};

class RealSavedModel : public ::testing::TestWithParam<RealModel> {
 protected:
  static Result<Written> ConvertIt(const std::string& dir, const std::vector<std::string>& denied,
                                   const char* tag) {
    Config config = PluginConfig();
    config.deny = denied;
    converter::Options options;
    FUSEBOX_ASSIGN(options.registry, Registry::Create(config));
    options.batch = 1;
    if (denied.empty()) options.verify = converter::Verification::kStrict;
    return Convert(dir, options, tag);
  }
};

TEST_P(RealSavedModel, IsFusedProvenAndHoldsItsWeightsOnce) {
  const RealModel& real = GetParam();
  FUSEBOX_NEEDS_MODEL(dir, real.path);
  const auto fused = ConvertIt(dir, {}, "fused");
  ASSERT_OK(fused);
  EXPECT_FALSE(fused->report.verification_failed);
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  const auto ops = OpsOf(**module);
  EXPECT_THAT(ops, Not(Contains(Key("WHILE"))));
  EXPECT_THAT(UnusedConstants(**module), IsEmpty());
  EXPECT_LT(std::filesystem::file_size(fused->path), real.weight_bytes + 8192);
  EXPECT_GT(std::filesystem::file_size(fused->path), real.weight_bytes);
  if (!real.lstm) return;
  EXPECT_EQ(ops.at("UNIDIRECTIONAL_SEQUENCE_LSTM"), 1);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees"));
}

TEST_P(RealSavedModel, WithoutThePluginIsALoopThatAgrees) {
  const RealModel& real = GetParam();
  FUSEBOX_NEEDS_MODEL(dir, real.path);
  const auto fused = ConvertIt(dir, {}, "fused"), loop = ConvertIt(dir, {"fusebox.rnn"}, "loop");
  ASSERT_OK(fused);
  ASSERT_OK(loop);
  const auto module = tflite::ReadFile(loop->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).contains("WHILE"), real.lstm);
  auto a = Open(fused->path, *Plugins()), b = Open(loop->path, *Plugins({}));
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const Tensors inputs = {InputOf(real.path, (*a)->inputs()[0].type, seed)};
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y), "") << "seed " << seed;
  }
}

TEST_P(RealSavedModel, AgreesWithStockTFLiteRunAfterRun) {
  const RealModel& real = GetParam();
  FUSEBOX_NEEDS_STOCK();
  FUSEBOX_NEEDS_MODEL(dir, real.path);
  for (const char* form : {"fused", "loop"}) {
    const bool fuse = std::string_view(form) == "fused";
    const auto written =
        ConvertIt(dir, fuse ? std::vector<std::string>{} : std::vector<std::string>{"fusebox.rnn"}, form);
    ASSERT_OK(written);
    auto ours = Open(written->path, *Plugins());
    auto stock = Stock::Open(written->path);
    ASSERT_OK(ours);
    ASSERT_OK(stock);
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      const Tensors inputs = {InputOf(real.path, (*ours)->inputs()[0].type, seed)};
      Tensors first;
      for (int run = 0; run < 3; ++run) {
        const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
        ASSERT_OK(a);
        ASSERT_OK(b);
        EXPECT_EQ(Difference(*a, *b), "") << form << ", seed " << seed << ", run " << run;
        if (run == 0) first = *a;
        EXPECT_EQ(Difference(*a, first, 0, 0), "") << form << ", run " << run;
      }
    }
  }
}

TEST_P(RealSavedModel, AgreesWithTensorFlowJs) {
  const RealModel& real = GetParam();
  FUSEBOX_NEEDS_TFJS();
  FUSEBOX_NEEDS_MODEL(dir, real.path);
  const auto fused = ConvertIt(dir, {}, "fused");
  ASSERT_OK(fused);
  auto ours = Open(fused->path, *Plugins());
  ASSERT_OK(ours);
  const auto layers = real.layers(dir);
  ASSERT_OK(layers);
  Tensors inputs;
  for (uint64_t seed = 1; seed <= 10; ++seed)
    inputs.push_back(InputOf(real.path, (*ours)->inputs()[0].type, seed));
  const auto expected = RunTfjs(*layers, inputs);
  ASSERT_OK(expected);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto outputs = Invoke(**ours, {inputs[i]});
    ASSERT_OK(outputs);
    EXPECT_EQ(Difference(*outputs, {(*expected)[i]}), "") << "seed " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealSavedModel, ::testing::ValuesIn(kModels),
                         [](const auto& info) { return std::string(info.param.name); });

// The same road on the project's own LSTM, which needs no download.
TEST(Tfjs, AgreesWithTheSampleLstm) {
  FUSEBOX_NEEDS_TFJS();
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  converter::Options options;
  options.registry = *Plugins();
  options.batch = 1;
  const auto fused = Convert(*dir, options, "fused");
  ASSERT_OK(fused);
  auto ours = Open(fused->path, options.registry);
  ASSERT_OK(ours);
  nlohmann::json lstm = LstmConfig();
  lstm["units"] = 8;
  lstm["inputShape"] = {5, 3};
  const std::string cell = "layer_with_weights-0/cell/";
  const auto layers =
      Stack(*dir, {{{"lstm", lstm, {}}, {cell + "kernel/", cell + "recurrent_kernel/", cell + "bias/"}},
                   {{"dense", {{"units", 1}}, {}}, Dense(1)}});
  ASSERT_OK(layers);
  Tensors inputs;
  for (uint64_t seed = 1; seed <= 10; ++seed) inputs.push_back(RandomInputs(**ours, seed)[0]);
  const auto expected = RunTfjs(*layers, inputs);
  ASSERT_OK(expected);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto outputs = Invoke(**ours, {inputs[i]});
    ASSERT_OK(outputs);
    EXPECT_EQ(Difference(*outputs, {(*expected)[i]}), "") << "seed " << i + 1;
  }
}

}  // namespace
}  // namespace fusebox::testing
