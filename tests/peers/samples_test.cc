// SPDX-License-Identifier: Apache-2.0
// What the converter writes of the sample SavedModels, in stock TFLite beside our own host.
#include <flatbuffers/flexbuffers.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samples/models/models.h"
#include "tests/testing/peer.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

converter::Options WithPlugins(const std::vector<std::string>& plugins, std::optional<int64_t> batch = {}) {
  converter::Options options;
  options.registry = *Plugins(plugins);
  options.batch = batch;
  return options;
}

// The same inputs to both, three times in one session each, with no reset.
void ExpectEqual(const std::string& path, const std::shared_ptr<Registry>& registry,
                 const std::string& signature = {}) {
  auto ours = Open(path, registry, signature);
  ASSERT_OK(ours);
  auto stock = Stock::Open(path);
  ASSERT_OK(stock);
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Tensors inputs = RandomInputs(**ours, seed);
    Tensors first;
    for (int run = 0; run < 3; ++run) {
      const auto a = Invoke(**ours, inputs), b = (*stock)->Invoke(inputs);
      ASSERT_OK(a);
      ASSERT_OK(b);
      EXPECT_EQ(Difference(*a, *b), "") << path << ", seed " << seed << ", run " << run;
      if (run == 0) first = *a;
      EXPECT_EQ(Difference(*a, first, 0, 0), "") << path << ", run " << run;
    }
  }
}

class StockRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(StockRuns, TheConvertedSampleAsWeDo) {
  FUSEBOX_NEEDS_STOCK();
  const auto dir = Sample(GetParam());
  ASSERT_OK(dir);
  const std::string_view name = GetParam();
  const bool open_batch =
      name == "keras_lstm" || name == "dense" || name == "lingvo_lstm" || name == "lingvo_norm_coupled";
  auto options = WithPlugins({"fusebox.rnn"}, open_batch ? std::optional<int64_t>(2) : std::nullopt);
  options.signatures = {"serving_default"};
  const auto fused = Convert(*dir, options, "fused");
  ASSERT_OK(fused);
  ExpectEqual(fused->path, options.registry);
}

INSTANTIATE_TEST_SUITE_P(All, StockRuns,
                         ::testing::Values("dense", "keras_lstm", "lstm_time_major", "lstm_backwards",
                                           "lstm_last_step", "lstm_states", "lstm_constant_state",
                                           "lstm_computed_state", "lstm_four_gates", "lstm_sequences",
                                           "conv_relu", "conv_relu_two_consumers", "conv_relu_spatial_bias",
                                           "lingvo_lstm", "lingvo_states", "lingvo_projection",
                                           "lingvo_norm_coupled", "lingvo_per_gate"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Stock, RunsTheLoopFormAsWeDo) {
  FUSEBOX_NEEDS_STOCK();
  for (const char* sample : {"keras_lstm", "lstm_time_major", "lstm_backwards", "lstm_computed_state"}) {
    const auto dir = Sample(sample);
    ASSERT_OK(dir);
    auto options = WithPlugins({}, 1);
    if (std::string_view(sample) == "lstm_time_major") options.shapes["x"] = Shape{5, 1, 3};
    const auto loop = Convert(*dir, options, "loop");
    ASSERT_OK(loop);
    ExpectEqual(loop->path, options.registry);
  }
}

TEST(Stock, CountsAsWeDo) {
  FUSEBOX_NEEDS_STOCK();
  const auto dir = Sample("counter");
  ASSERT_OK(dir);
  auto options = WithPlugins({});
  options.signatures = {"serving_default"};
  const auto counter = Convert(*dir, options, "counter");
  ASSERT_OK(counter);
  auto ours = Open(counter->path, options.registry);
  auto stock = Stock::Open(counter->path);
  ASSERT_OK(ours);
  ASSERT_OK(stock);
  const Tensors one = {Floats(Shape::Scalar(), {1})};
  size_t count = 0;
  while ((*ours)->outputs()[count].name != "count") ++count;
  for (float expected = 1; expected <= 3; ++expected) {
    const auto a = Invoke(**ours, one), b = (*stock)->Invoke(one);
    ASSERT_OK(a);
    ASSERT_OK(b);
    EXPECT_EQ((*a)[count].data.As<float>()[0], expected);
    EXPECT_EQ((*b)[count].data.As<float>()[0], expected);
    EXPECT_EQ(Difference(*a, *b), "");
  }
}

TEST(Stock, CarriesTheStatesOfTheUserFromCallToCall) {
  FUSEBOX_NEEDS_STOCK();
  samples::LstmOptions lstm{.batch = 1, .steps = 1, .initial_state = samples::LstmOptions::State::kInput};
  ASSERT_OK(samples::WriteLstm(TestDir() + "/one", 1, lstm));
  lstm.steps = 20;
  ASSERT_OK(samples::WriteLstm(TestDir() + "/twenty", 1, lstm));
  const auto options = WithPlugins({"fusebox.rnn"});
  const auto one = Convert(TestDir() + "/one", options, "fused"),
             twenty = Convert(TestDir() + "/twenty", options, "fused");
  ASSERT_OK(one);
  ASSERT_OK(twenty);
  auto names = Open(twenty->path, options.registry);
  auto step = Stock::Open(one->path), whole = Stock::Open(twenty->path);
  ASSERT_OK(names);
  ASSERT_OK(step);
  ASSERT_OK(whole);
  Tensors inputs = RandomInputs(**names, 1);
  const auto expected = (*whole)->Invoke(inputs), ours = Invoke(**names, inputs);
  ASSERT_OK(expected);
  ASSERT_OK(ours);
  EXPECT_EQ(Difference(*ours, *expected), "");
  const auto index = [](const std::vector<Session::Slot>& slots, std::string_view name) {
    size_t i = 0;
    while (slots[i].name != name) ++i;
    return i;
  };
  const auto& in = (*names)->inputs();
  const auto& out = (*names)->outputs();
  const Tensor whole_x = inputs[index(in, "x")];
  const auto x = whole_x.data.As<float>();
  Tensors last;
  for (ptrdiff_t t = 0; t < 20; ++t) {
    inputs[index(in, "x")] = Floats({1, 1, 3}, {x.begin() + t * 3, x.begin() + t * 3 + 3});
    auto outputs = (*step)->Invoke(inputs);
    ASSERT_OK(outputs);
    for (const char* state : {"state_h", "state_c"}) inputs[index(in, state)] = (*outputs)[index(out, state)];
    last = std::move(*outputs);
  }
  EXPECT_EQ(Difference(last, *expected), "");
}

TEST(Stock, HandsAThirdPartysKernelItsOptions) {
  FUSEBOX_NEEDS_STOCK();
  const auto dir = Sample("custom_fused");
  ASSERT_OK(dir);
  const auto written = Convert(*dir, WithPlugins({}), "custom");
  ASSERT_OK(written);
  EXPECT_FALSE(Stock::Open(written->path) && (*Stock::Open(written->path))->Run())
      << "no kernel was registered";
  auto stock = Stock::Open(written->path, {.custom = "my_custom_fused_op"});
  ASSERT_OK(stock);
  const auto outputs = (*stock)->Invoke({Random({DType::kF32, {1, 28, 28, 3}}, 1)});
  ASSERT_OK(outputs);
  ASSERT_FALSE((*stock)->custom_options().empty());
  const std::string& bytes = (*stock)->custom_options().back();
  const auto map = flexbuffers::GetRoot(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()).AsMap();
  ASSERT_EQ(map.Keys().size(), 1u);
  EXPECT_STREQ(map.Keys()[0].AsKey(), "example_option");
  EXPECT_EQ(map["example_option"].AsInt64(), 10);
}

}  // namespace
}  // namespace fusebox::testing
