// SPDX-License-Identifier: Apache-2.0
// Cells of Lingvo of the project's own: fused by the rnn plugin, and the same as their bodies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "samples/models/models.h"
#include "tests/e2e/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::HasSubstr;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

converter::Options With(const std::vector<std::string>& plugins) {
  converter::Options options;
  options.batch = 2;
  options.registry = *Plugins(plugins);
  options.verify = converter::Verification::kStrict;
  return options;
}

class LingvoSample : public ::testing::TestWithParam<const char*> {};

TEST_P(LingvoSample, IsOneLstmThatAgreesWithItsBodyCallAfterCall) {
  const auto dir = Sample(GetParam());
  ASSERT_OK(dir);
  const auto fused = Convert(*dir, With({"fusebox.rnn"}), "fused"), plain = Convert(*dir, With({}), "plain");
  ASSERT_OK(fused);
  ASSERT_OK(plain);
  EXPECT_FALSE(fused->report.disproved);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].proof, HasSubstr("agrees"));
  const auto ops = OpsOf(**tflite::ReadFile(fused->path));
  EXPECT_EQ(ops.at("LSTM"), 1);
  EXPECT_FALSE(ops.contains("TRANSPOSE") || ops.contains("SLICE") || ops.contains("FULLY_CONNECTED"));
  EXPECT_FALSE(OpsOf(**tflite::ReadFile(plain->path)).contains("LSTM"));
  auto a = Open(fused->path, *Plugins()), b = Open(plain->path, *Plugins({}));
  ASSERT_OK(a);
  ASSERT_OK(b);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Tensors inputs = RandomInputs(**a, seed);
    for (int call = 0; call < 2; ++call) {
      const auto x = Invoke(**a, inputs), y = Invoke(**b, inputs);
      ASSERT_OK(x);
      ASSERT_OK(y);
      EXPECT_EQ(Difference(*x, *y), "") << "seed " << seed << ", call " << call;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LingvoSample,
                         ::testing::Values("lingvo_lstm", "lingvo_states", "lingvo_projection",
                                           "lingvo_norm_coupled", "lingvo_per_gate"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Lingvo, KeepsADynamicBatch) {
  const auto dir = Sample("lingvo_lstm");
  ASSERT_OK(dir);
  auto options = With({"fusebox.rnn"});
  options.batch.reset();
  const auto fused = Convert(*dir, options, "fused");
  ASSERT_OK(fused);
  EXPECT_TRUE(fused->report.sites.at(0).fused) << fused->report.sites[0].why;
  auto session = Open(fused->path, *Plugins());
  ASSERT_OK(session);
  const Tensor x = Random({DType::kF32, {3, 3}}, 1);
  const auto all = Invoke(**session, {x});
  ASSERT_OK(all);
  const auto values = x.data.As<float>(), out = (*all)[0].data.As<float>();
  for (int64_t row = 0; row < 3; ++row) {
    const auto one =
        Invoke(**session, {Floats({1, 3}, {values.begin() + row * 3, values.begin() + row * 3 + 3})});
    ASSERT_OK(one);
    EXPECT_EQ(Difference(*one, {Floats({1, 8}, {out.begin() + row * 8, out.begin() + row * 8 + 8})}), "");
  }
}

// One interface, two ways to build the body, every spelling of the name: the same file but for names.
TEST(Lingvo, OfAnotherBodyAndSpellingIsTheSameOp) {
  samples::LingvoOptions options{
      .batch = 2, .outputs = 4, .layer_norm = true, .coupled = true, .states = true};
  Tensors first;
  for (const bool bare : {false, true}) {
    for (const auto body : {samples::LingvoOptions::Body::kLingvo, samples::LingvoOptions::Body::kPerGate}) {
      options.bare_name = bare;
      options.body = body;
      const std::string dir = TestDir() + "/model";
      ASSERT_OK(samples::WriteLingvo(dir, 1, options));
      const auto fused = Convert(dir, With({"fusebox.rnn"}), "fused");
      ASSERT_OK(fused);
      auto session = Open(fused->path, *Plugins());
      ASSERT_OK(session);
      EXPECT_EQ(OpsOf(**tflite::ReadFile(fused->path)).at("LSTM"), 1);
      const auto outputs = Invoke(**session, RandomInputs(**session, 1));
      ASSERT_OK(outputs);
      if (first.empty()) first = *outputs;
      EXPECT_EQ(Difference(*outputs, first, 0, 0), "");
    }
  }
}

TEST(Lingvo, OfSwappedGatesIsRefusedByTheStrictProof) {
  const auto dir = Sample("lingvo_swapped_gates");
  ASSERT_OK(dir);
  const auto kept = Convert(*dir, With({"fusebox.rnn"}), "kept");
  ASSERT_OK(kept);
  EXPECT_TRUE(kept->report.disproved);
  EXPECT_FALSE(OpsOf(**tflite::ReadFile(kept->path)).contains("LSTM"));
}

}  // namespace
}  // namespace fusebox::testing
