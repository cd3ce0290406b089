// SPDX-License-Identifier: Apache-2.0
// Cells of Lingvo of the project's own: fused by the rnn plugin, and the same as their bodies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "host/tflite/tflite.h"
#include "tests/testing/models/lingvo.h"
#include "tests/testing/pipeline.h"

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
  EXPECT_FALSE(fused->report.verification_failed);
  ASSERT_EQ(fused->report.sites.size(), 1u);
  EXPECT_TRUE(fused->report.sites[0].fused) << fused->report.sites[0].why;
  EXPECT_THAT(fused->report.sites[0].verification, HasSubstr("agrees"));
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
  test_models::LingvoOptions options{
      .batch = 2, .outputs = 4, .layer_norm = true, .coupled = true, .states = true};
  Tensors first;
  for (const bool bare : {false, true}) {
    for (const auto body :
         {test_models::LingvoOptions::Body::kLingvo, test_models::LingvoOptions::Body::kPerGate}) {
      options.bare_name = bare;
      options.body = body;
      const std::string dir = TestDir() + "/model";
      ASSERT_OK(test_models::WriteLingvo(dir, 1, options));
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

// Why a cell is not fused whose body clips so. Nothing else of the body matters to the rule.
using Clip = std::function<ValueId(Function&, ValueId)>;
struct Clips {
  Clip of_input, of_gate, of_cell, of_state,
      of_output;  // of_state: of what is given back as the cell state alone
  bool states = true;
};
std::string WhyNot(const Clips& clips) {
  const auto clipped = [](const Clip& clip, Function& f, ValueId v) { return clip ? clip(f, v) : v; };
  Module module;
  Function& main = module.Add("main");
  const Type x{DType::kF32, {2, 3}}, state{DType::kF32, {2, 4}};
  const auto constant = [&](Shape shape) {
    return main.AddConst(Random({DType::kF32, std::move(shape)}, 1));
  };
  std::vector<ValueId> operands = {main.AddInput(x), constant({7, 16}), constant({16}),
                                   constant(Shape::Scalar())};
  if (clips.states) operands.insert(operands.end(), {main.AddInput(state), main.AddInput(state)});
  Node& node = main.AddNode(Op::kStablehloComposite, operands,
                            std::vector<Type>(static_cast<size_t>(clips.states ? 2 : 1), state));
  node.name = "lingvo.LSTMCellSimple";
  node.body = "body";
  main.outputs = node.results;
  Function& body = module.Add("body");
  for (const ValueId v : node.operands) body.AddInput(main.value(v).type);
  const auto map = [&](Op op, std::vector<ValueId> of) {
    return body.AddNode(op, std::move(of), {state}).results[0];
  };
  const ValueId in = clipped(clips.of_input, body, body.inputs[0]);
  const ValueId sum = map(Op::kFullyConnected, {in, body.inputs[1], body.inputs[2]});
  const ValueId gate = map(Op::kLogistic, {clipped(clips.of_gate, body, sum)});
  const ValueId c = clipped(clips.of_cell, body, map(Op::kMul, {gate, sum}));
  const ValueId m = map(Op::kMul, {gate, map(Op::kTanh, {c})});
  body.outputs = {clipped(clips.of_output, body, m)};
  if (clips.states) body.outputs.push_back(clipped(clips.of_state, body, c));
  const auto sites = Fuse(module, **Plugins({"fusebox.rnn"}));
  return !sites ? sites.error().message : sites->at(0).fused ? "" : sites->at(0).why;
}

ValueId Bound(Function& f, Op op, ValueId value, float at) {
  const ValueId bound = f.AddConst<float>(DType::kF32, Shape::Scalar(), {at});
  return f.AddNode(op, {value, bound}, {f.value(value).type}).results[0];
}
Clip Between(float low, float high) {
  return [=](Function& f, ValueId v) { return Bound(f, Op::kMaximum, Bound(f, Op::kMinimum, v, high), low); };
}

TEST(Lingvo, WhoseBodyClipsAsTheOpCannotSayIsRefused) {
  EXPECT_EQ(WhyNot({}), "");
  EXPECT_EQ(WhyNot({.of_cell = Between(-2, 2)}), "");
  EXPECT_EQ(WhyNot({.of_cell = Between(-2, 2), .states = false}), "");
  EXPECT_THAT(WhyNot({.of_cell = Between(-1, 2)}), HasSubstr("which is not symmetric"));
  EXPECT_THAT(WhyNot({.of_cell = [](Function& f, ValueId v) { return Bound(f, Op::kMinimum, v, 1); }}),
              HasSubstr("CLIP: the body clips a value on one side only"));
  EXPECT_THAT(WhyNot({.of_output = Between(-1, 1)}), HasSubstr("CLIP: the output is clipped"));
}

TEST(Lingvo, WhoseBodyClipsAnythingButItsCellStateIsRefused) {
  const Clip clip = Between(-1, 1);
  const auto twice = [&](Function& f, ValueId v) { return Between(-2, 2)(f, clip(f, v)); };
  for (const bool states : {true, false}) {
    for (const Clips& clips : {Clips{.of_input = clip}, Clips{.of_gate = clip}, Clips{.of_cell = twice},
                               Clips{.of_input = clip, .of_cell = clip}, Clips{.of_state = clip}}) {
      Clips said = clips;
      said.states = states;
      if (clips.of_state && !states) continue;
      EXPECT_THAT(WhyNot(said),
                  HasSubstr("CLIP: the body clips something that is neither the cell state nor the output"));
    }
  }
}

TEST(Lingvo, OfSwappedGatesIsRefusedByTheStrictVerification) {
  const auto dir = Sample("lingvo_swapped_gates");
  ASSERT_OK(dir);
  const auto kept = Convert(*dir, With({"fusebox.rnn"}), "kept");
  ASSERT_OK(kept);
  EXPECT_TRUE(kept->report.verification_failed);
  EXPECT_FALSE(OpsOf(**tflite::ReadFile(kept->path)).contains("LSTM"));
}

}  // namespace
}  // namespace fusebox::testing
