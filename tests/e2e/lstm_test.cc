// SPDX-License-Identifier: Apache-2.0
// Keras LSTMs of the project's own: fused by the rnn plugin, and the same as their definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

converter::Options Fused(std::optional<int64_t> batch = {}) {
  converter::Options options;
  options.batch = batch;
  options.registry = *Plugins();
  return options;
}

converter::Options Unfused() {
  converter::Options options = Fused();
  Config config = PluginConfig();
  config.deny = {"fusebox.rnn"};
  options.registry = *Registry::Create(config);
  return options;
}

// The inputs of a sample at batch 2, where its batch is open.
void MakeStatic(converter::Options& options, std::string_view sample) {
  options.batch.reset();
  if (sample == "lstm_time_major") options.shapes["x"] = Shape{5, 2, 3};
  else if (sample != "lstm_states" && sample != "lstm_constant_state") options.batch = 2;
}

class LstmSample : public ::testing::TestWithParam<const char*> {};

TEST_P(LstmSample, IsOneFusedOpThatAgreesWithItsLoop) {
  const auto dir = Sample(GetParam());
  ASSERT_OK(dir);
  auto options = Fused();
  MakeStatic(options, GetParam());
  options.verify = converter::Verification::kStrict;
  const auto fused = Convert(*dir, options, "fused");
  ASSERT_OK(fused);
  EXPECT_FALSE(fused->report.verification_failed);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees"));

  auto unfused_options = Unfused();
  MakeStatic(unfused_options, GetParam());
  const auto unfused = Convert(*dir, unfused_options, "unfused");
  ASSERT_OK(unfused);
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  const auto ops = OpsOf(**module);
  EXPECT_EQ(ops.at("UNIDIRECTIONAL_SEQUENCE_LSTM"), 1);
  EXPECT_THAT(ops, Not(Contains(Key("WHILE"))));
  EXPECT_THAT(UnusedConstants(**module), IsEmpty());
  const auto loop = tflite::ReadFile(unfused->path);
  ASSERT_OK(loop);
  EXPECT_EQ(OpsOf(**loop).at("WHILE"), 1);
  EXPECT_THAT(OpsOf(**loop), Not(Contains(Key("UNIDIRECTIONAL_SEQUENCE_LSTM"))));

  auto a = Open(fused->path, *Plugins()), b = Open(unfused->path, unfused_options.registry);
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Tensors inputs = RandomInputs(**a, seed);
    // Sequences of any length: more than the one step that stands for an unknown size.
    const Shape& declared = (*a)->inputs()[0].type.shape;
    if (declared[1] < 0) inputs[0] = Random({DType::kF32, {declared[0], 4, declared[2]}}, seed);
    const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y), "") << "seed " << seed;
    const auto again = Invoke(**a, inputs);
    ASSERT_OK(again);
    EXPECT_EQ(Difference(*again, *x, 0, 0), "") << "a second run of seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, LstmSample,
                         ::testing::Values("keras_lstm", "lstm_time_major", "lstm_backwards",
                                           "lstm_sequences", "lstm_last_step", "lstm_states",
                                           "lstm_constant_state", "lstm_computed_state", "lstm_four_gates",
                                           "indy_lstm"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Lstm, KeepsADynamicBatchAndADynamicLength) {
  const auto dir = Sample("lstm_sequences");
  ASSERT_OK(dir);
  const auto fused = Convert(*dir, Fused(), "fused");
  ASSERT_OK(fused);
  auto session = Open(fused->path, *Plugins());
  ASSERT_OK(session);
  const Tensor x = Random({DType::kF32, {3, 6, 3}}, 1);
  const auto all = Invoke(**session, {x});
  ASSERT_OK(all);
  EXPECT_EQ((*all)[0].type.shape, Shape({3, 6, 8}));
  // The rows of a batch know nothing of each other.
  const auto values = x.data.As<float>(), out = (*all)[0].data.As<float>();
  for (int64_t row = 0; row < 3; ++row) {
    const auto one =
        Invoke(**session, {Floats({1, 6, 3}, {values.begin() + row * 18, values.begin() + (row + 1) * 18})});
    ASSERT_OK(one);
    EXPECT_EQ(Difference(*one, {Floats({1, 6, 8}, {out.begin() + row * 48, out.begin() + (row + 1) * 48})}),
              "");
  }
}

// Twenty calls of one step, each with the states that the call before gave, are one call of twenty steps.
TEST(Lstm, StatesOfTheUserGoFromCallToCall) {
  samples::LstmOptions options{.batch = 1, .steps = 1, .initial_state = samples::LstmOptions::State::kInput};
  ASSERT_OK(samples::WriteLstm(TestDir() + "/one", 1, options));
  options.steps = 20;
  ASSERT_OK(samples::WriteLstm(TestDir() + "/twenty", 1, options));
  const auto one = Convert(TestDir() + "/one", Fused(), "fused");
  const auto twenty = Convert(TestDir() + "/twenty", Fused(), "fused");
  ASSERT_OK(one);
  ASSERT_OK(twenty);
  auto step = Open(one->path, *Plugins()), whole = Open(twenty->path, *Plugins());
  ASSERT_OK(step);
  ASSERT_OK(whole);
  ASSERT_EQ(OpsOf(**tflite::ReadFile(one->path)).at("UNIDIRECTIONAL_SEQUENCE_LSTM"), 1);

  const auto index = [](const std::vector<Session::Slot>& slots, const std::string& name) {
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].name == name) return i;
    }
    ADD_FAILURE() << "no " << name;
    return size_t{0};
  };
  const auto& in = (*step)->inputs();
  const auto& out = (*step)->outputs();
  Tensors inputs = RandomInputs(**whole, 1);
  const auto expected = Invoke(**whole, inputs);
  ASSERT_OK(expected);
  const Tensor whole_x = inputs[index(in, "x")];
  const auto x = whole_x.data.As<float>();
  Tensors last;
  for (ptrdiff_t t = 0; t < 20; ++t) {
    inputs[index(in, "x")] = Floats({1, 1, 3}, {x.begin() + t * 3, x.begin() + t * 3 + 3});
    auto outputs = Invoke(**step, inputs);
    ASSERT_OK(outputs);
    inputs[index(in, "state_h")] = (*outputs)[index(out, "state_h")];
    inputs[index(in, "state_c")] = (*outputs)[index(out, "state_c")];
    last = std::move(*outputs);
  }
  EXPECT_EQ(Difference(last, *expected), "");
}

TEST(Lstm, OfSwappedGatesIsRefusedByTheStrictVerification) {
  const auto dir = Sample("lstm_swapped_gates");
  ASSERT_OK(dir);
  auto options = Fused(1);
  options.verify = converter::Verification::kStrict;
  const auto kept = Convert(*dir, options, "kept");
  ASSERT_OK(kept);
  EXPECT_TRUE(kept->report.verification_failed);
  ASSERT_EQ(kept->report.sites.size(), 1u);
  EXPECT_FALSE(kept->report.sites[0].fused);
  const auto module = tflite::ReadFile(kept->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).at("WHILE"), 1);
  EXPECT_THAT(OpsOf(**module), Not(Contains(Key("UNIDIRECTIONAL_SEQUENCE_LSTM"))));

  const std::string out = TestDir() + "/out.tflite";
  const std::string rnn = FUSEBOX_BUILD_DIR "/plugins/fusebox.rnn";
  const auto command =
      Fusebox({"convert", *dir, "-o", out, "--batch", "1", "--plugin", rnn, "--verify", "strict"});
  EXPECT_EQ(command.status, 1) << command.err;
  EXPECT_THAT(command.err, HasSubstr("fusebox.keras_lstm"));
  EXPECT_THAT(command.err, HasSubstr("--verify-seed"));
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST(Lstm, ThatIsKeptAsACompositeFusesWhenItIsOpened) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  auto options = Fused(1);
  options.composites = converter::Composites::kKeep;
  const auto kept = Convert(*dir, options, "kept");
  ASSERT_OK(kept);
  const auto module = tflite::ReadFile(kept->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).at("STABLEHLO_COMPOSITE"), 1);

  auto with = Model::Open(kept->path, {.registry = *Plugins()});
  auto without = Model::Open(kept->path, {.registry = *Plugins({})});
  ASSERT_OK(with);
  ASSERT_OK(without);
  ASSERT_EQ((*with)->fusions().size(), 1u);
  EXPECT_TRUE((*with)->fusions()[0].fused) << (*with)->fusions()[0].why;
  ASSERT_EQ((*without)->fusions().size(), 1u);
  EXPECT_FALSE((*without)->fusions()[0].fused);
  EXPECT_THAT((*without)->fusions()[0].why, Not(IsEmpty()));
  auto a = Session::Create(*with), b = Session::Create(*without);
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto x = Invoke(**a, RandomInputs(**a, seed)), y = Invoke(**b, RandomInputs(**a, seed));
    ASSERT_OK(x);
    ASSERT_OK(y);
    EXPECT_EQ(Difference(*x, *y), "");
  }
}

TEST(Lstm, ExplainsEachSiteAndTheOpsBeforeAndAfter) {
  const auto dir = Sample("keras_lstm");
  ASSERT_OK(dir);
  const std::string rnn = FUSEBOX_BUILD_DIR "/plugins/fusebox.rnn";
  const auto command = Fusebox(
      {"convert", *dir, "-o", TestDir() + "/out.tflite", "--batch", "1", "--plugin", rnn, "--explain"});
  EXPECT_EQ(command.status, 0) << command.err;
  for (const char* word : {"fusebox.keras_lstm", "fused", "UNIDIRECTIONAL_SEQUENCE_LSTM",
                           "lstm/lstm_cell/kernel", "never written"})
    EXPECT_THAT(command.out, HasSubstr(word));
}

}  // namespace
}  // namespace fusebox::testing
