// SPDX-License-Identifier: Apache-2.0
// Recurrent layers that a model does not name: loops and unrolled cells, recognized by what they compute, or
// left alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "models/saved_model/saved_model_builder.h"
#include "tests/testing/models/models.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Rnn = samples::Keras3RnnOptions;
using Layer = Rnn::Layer;
using Twist = Rnn::Twist;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct Case {
  const char* name;
  Rnn options;
};

Result<Written> ConvertRnn(const Rnn& rnn, converter::Composites composites) {
  const std::string dir = TestDir() + "/rnn";
  FUSEBOX_TRY(samples::WriteKeras3Rnn(dir, 7, rnn));
  converter::Options options;
  options.registry = *Plugins();
  options.signatures = {"serve"};
  options.composites = composites;
  options.keep_bodies = FusionOptions::KeepBodies::kNone;
  options.verify = converter::Verification::kStrict;
  return Convert(dir, options, composites == converter::Composites::kFuse ? "fused" : "loop");
}

Result<Tensors> RunRnn(const std::string& path, const Rnn& rnn) {
  FUSEBOX_ASSIGN(const auto session, Open(path, *Plugins(), "serve"));
  Tensor x = Random({DType::kF32, {rnn.batch < 0 ? 2 : rnn.batch, rnn.steps, rnn.inputs}}, 5);
  if (rnn.mask) {  // a step in the middle and one at the end of the first sequence are padding
    std::vector<float> values(x.data.As<float>().begin(), x.data.As<float>().end());
    for (const int step : {1, rnn.steps - 1})
      std::fill_n(values.begin() + step * rnn.inputs, rnn.inputs, 0.0f);
    x.data = Buffer::Of<float>(values);
  }
  FUSEBOX_TRY(Invoke(*session, {x}));
  return Invoke(*session, {x});  // what a call leaves behind does not show in the next
}

std::string NotesOf(const converter::Report& report) {
  std::string all;
  for (const std::string& note : report.notes) all += note + "\n";
  return all;
}

const char* NameOf(Layer layer) {
  return layer == Layer::kLstm ? "keras.lstm" : layer == Layer::kGru ? "keras.gru" : "keras.simple_rnn";
}

class UnnamedLayer : public ::testing::TestWithParam<Case> {};

TEST_P(UnnamedLayer, IsOneFusedOpThatAgreesWithWhatItWas) {
  const Rnn& rnn = GetParam().options;
  const auto fused = ConvertRnn(rnn, converter::Composites::kFuse);
  ASSERT_OK(fused);
  ASSERT_EQ(fused->report.sites.size(), 1u) << NotesOf(fused->report);
  const SiteReport& site = fused->report.sites[0];
  EXPECT_EQ(site.composite, NameOf(rnn.layer));
  EXPECT_THAT(site.location, StartsWith("sequential/rnn"));
  EXPECT_TRUE(site.fused) << site.why;
  EXPECT_THAT(site.verification, StartsWith("agrees (f64"));
  const auto module = tflite::ReadFile(fused->path);
  ASSERT_OK(module);
  const auto ops = OpsOf(**module);
  EXPECT_EQ(ops.count("FULLY_CONNECTED"), 0u) << ToText(**module);
  EXPECT_THAT(UnusedConstants(**module), IsEmpty());

  const auto loop = ConvertRnn(rnn, converter::Composites::kInline);
  ASSERT_OK(loop);
  const auto a = RunRnn(fused->path, rnn), b = RunRnn(loop->path, rnn);
  ASSERT_OK(a);
  ASSERT_OK(b);
  EXPECT_EQ(Difference(*a, *b, 1e-6, 1e-6), "");
}

INSTANTIATE_TEST_SUITE_P(
    Loops, UnnamedLayer,
    ::testing::Values(
        Case{"Lstm", {}}, Case{"LstmByGates", {.implementation = 1}},
        Case{"LstmBackwards", {.go_backwards = true, .return_sequences = true}},
        Case{"LstmStates", {.batch = 2, .return_sequences = true, .return_state = true}},
        Case{"LstmStatesOnly", {.return_state = true}}, Case{"LstmWithoutBias", {.use_bias = false}},
        Case{"LstmRelu", {.relu = true}},
        Case{"LstmHardSigmoid", {.return_state = true, .gates = Rnn::Gates::kHardSigmoid}},
        Case{"LstmHardSigmoidBackwards",
             {.go_backwards = true, .return_sequences = true, .gates = Rnn::Gates::kHardSigmoid}},
        Case{"LstmHardSigmoidRelu", {.batch = 2, .relu = true, .gates = Rnn::Gates::kHardSigmoid}},
        Case{"LstmHardSigmoidOfKeras3",
             {.implementation = 1, .return_sequences = true, .gates = Rnn::Gates::kHardSigmoidOfKeras3}},
        Case{"LstmOneStep", {.steps = 1, .return_sequences = true}},
        Case{"Gru", {.layer = Layer::kGru, .return_sequences = true, .return_state = true}},
        Case{"GruByGates", {.layer = Layer::kGru, .implementation = 1}},
        Case{"GruResetBefore", {.layer = Layer::kGru, .reset_after = false}},
        Case{"GruResetBeforeByGates", {.layer = Layer::kGru, .reset_after = false, .implementation = 1}},
        Case{"GruBackwards", {.layer = Layer::kGru, .go_backwards = true}},
        Case{"GruWithoutBias", {.layer = Layer::kGru, .use_bias = false}},
        Case{"GruHardSigmoid", {.layer = Layer::kGru, .gates = Rnn::Gates::kHardSigmoid}},
        Case{"GruHardSigmoidOfKeras3",
             {.layer = Layer::kGru, .reset_after = false, .gates = Rnn::Gates::kHardSigmoidOfKeras3}},
        Case{"SimpleRnn", {.layer = Layer::kSimpleRnn, .return_sequences = true, .return_state = true}},
        Case{"SimpleRnnRelu", {.layer = Layer::kSimpleRnn, .relu = true}},
        Case{"SimpleRnnBackwards", {.layer = Layer::kSimpleRnn, .go_backwards = true}}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Unrolled, UnnamedLayer,
    ::testing::Values(
        Case{"Lstm", {.return_sequences = true, .unroll = true}}, Case{"LstmLast", {.unroll = true}},
        Case{"LstmByGates", {.implementation = 1, .unroll = true}},
        Case{"LstmHardSigmoid",
             {.return_sequences = true, .gates = Rnn::Gates::kHardSigmoid, .unroll = true}},
        Case{"LstmFixedBatch", {.batch = 2, .return_sequences = true, .return_state = true, .unroll = true}},
        Case{"LstmStates", {.return_state = true, .unroll = true}},
        Case{"LstmBackwards", {.go_backwards = true, .return_sequences = true, .unroll = true}},
        Case{"Gru", {.layer = Layer::kGru, .return_sequences = true, .unroll = true}},
        Case{"GruFixedBatch", {.layer = Layer::kGru, .batch = 2, .unroll = true}},
        Case{"GruResetBefore", {.layer = Layer::kGru, .reset_after = false, .unroll = true}},
        Case{"GruResetBeforeFixedBatch",
             {.layer = Layer::kGru, .reset_after = false, .batch = 2, .return_state = true, .unroll = true}}),
    [](const auto& info) { return std::string(info.param.name); });

// What CudnnRNNV3 computes is known from the loop that Keras writes for the same weights.
class CudnnLayer : public ::testing::TestWithParam<Case> {};

TEST_P(CudnnLayer, ComputesWhatTheLoopWithItsWeightsDoes) {
  Rnn rnn = GetParam().options;
  const auto loop = ConvertRnn(rnn, converter::Composites::kInline);
  ASSERT_OK(loop);
  const auto b = RunRnn(loop->path, rnn);
  ASSERT_OK(b);
  rnn.cudnn = true;
  for (const auto composites : {converter::Composites::kFuse, converter::Composites::kInline}) {
    const auto converted = ConvertRnn(rnn, composites);
    ASSERT_OK(converted);
    if (composites == converter::Composites::kFuse) {
      ASSERT_EQ(converted->report.sites.size(), 1u) << NotesOf(converted->report);
      EXPECT_TRUE(converted->report.sites[0].fused) << converted->report.sites[0].why;
      EXPECT_THAT(converted->report.sites[0].verification, StartsWith("agrees (f64"));
    }
    const auto a = RunRnn(converted->path, rnn);
    ASSERT_OK(a);
    EXPECT_EQ(Difference(*a, *b, 1e-6, 1e-6), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, CudnnLayer,
    ::testing::Values(Case{"Lstm", {.return_sequences = true}},
                      Case{"LstmStates", {.batch = 2, .return_state = true}},
                      Case{"LstmBackwards", {.go_backwards = true, .return_sequences = true}},
                      Case{"Gru", {.layer = Layer::kGru, .return_sequences = true, .return_state = true}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Cudnn, IsRefusedWithTheReasonWhereTheLayerCannotSayIt) {
  const auto refusal = [](Twist twist) {
    const auto dir = TestDir() + "/rnn";
    EXPECT_TRUE(samples::WriteKeras3Rnn(dir, 7, {.cudnn = true, .twist = twist}));
    converter::Conversion conversion = converter::FromSavedModel(dir);
    conversion.options.registry = *Plugins();
    EXPECT_FALSE(conversion.Convert());
    return NotesOf(conversion.report());
  };
  EXPECT_THAT(refusal(Twist::kLengths), HasSubstr("its sequences may differ in their lengths"));
  EXPECT_THAT(refusal(Twist::kDirection), HasSubstr("it has 1 states for 2 directions"));
}

// Copies of a cell that are no layer.
class TwistedCopies : public ::testing::TestWithParam<Twist> {};

TEST_P(TwistedCopies, StayWhatTheyAre) {
  const Rnn rnn{.return_sequences = true, .unroll = true, .twist = GetParam()};
  const auto converted = ConvertRnn(rnn, converter::Composites::kFuse);
  ASSERT_OK(converted);
  EXPECT_TRUE(converted->report.sites.empty()) << converted->report.sites[0].composite;
}

INSTANTIATE_TEST_SUITE_P(All, TwistedCopies,
                         ::testing::Values(Twist::kClip, Twist::kSharedSteps, Twist::kOtherWeights));

// What a loop that is no layer says in the notes, and that it goes on computing what it did.
class TwistedLoop : public ::testing::TestWithParam<std::pair<Rnn, const char*>> {};

TEST_P(TwistedLoop, StaysALoopAndSaysWhy) {
  const auto& [rnn, reason] = GetParam();
  const auto converted = ConvertRnn(rnn, converter::Composites::kFuse);
  ASSERT_OK(converted);
  EXPECT_TRUE(converted->report.sites.empty()) << converted->report.sites[0].composite;
  EXPECT_THAT(NotesOf(converted->report), HasSubstr(reason));
  const auto module = tflite::ReadFile(converted->path);
  ASSERT_OK(module);
  EXPECT_EQ(OpsOf(**module).at("WHILE"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    All, TwistedLoop,
    ::testing::Values(std::pair(Rnn{.twist = Twist::kClip}, "the next c is MINIMUM"),
                      std::pair(Rnn{.return_sequences = true, .twist = Twist::kWriteAt},
                                "it writes its list at SUB"),
                      std::pair(Rnn{.return_sequences = true, .twist = Twist::kListLength},
                                "another length than it has steps"),
                      std::pair(Rnn{.twist = Twist::kListLength}, "another length than it has steps"),
                      std::pair(Rnn{.twist = Twist::kLastOf}, "it does not run over the whole length"),
                      std::pair(Rnn{.batch = 2, .twist = Twist::kReadAt}, "is no counter"),
                      std::pair(Rnn{.twist = Twist::kCondition}, "its condition is LESS"),
                      std::pair(Rnn{.return_sequences = true, .twist = Twist::kCounterOut},
                                "is used, which the layer does not give")));

// The sample writers draw the same weights for both exporters.
TEST(VariablesSavedTwice, ConvertToTheModelThatSavesThemOnce) {
  std::vector<Tensors> results;
  for (const char* name : {"dense", "keras3_dense"}) {
    const std::string dir = TestDir() + "/" + name;
    ASSERT_TRUE(test_models::FindModel(name)->write(dir, 3));
    converter::Options options;
    options.registry = *Plugins();
    const auto converted = Convert(dir, options, name);
    ASSERT_OK(converted);
    EXPECT_THAT(converted->report.notes, IsEmpty());
    const auto session = Open(converted->path, *Plugins());
    ASSERT_OK(session);
    const auto result = Invoke(**session, {Random({DType::kF32, {2, 8}}, 5)});
    ASSERT_OK(result);
    results.push_back(*result);
  }
  EXPECT_EQ(Difference(results[0], results[1], 0, 0), "");
}

TEST(VariablesSavedTwice, AreThoseOfTheRestoreFunctionWithAWarningWhereTheyDiffer) {
  models::SavedModelBuilder model(models::SavedModelBuilder::Exporter::kKeras3);
  const models::VariableRef v = model.AddVariable("v", models::Float(2), "v");
  models::FunctionBuilder& f = model.AddFunction("__inference_call");
  const models::Ref x = f.Arg("x", tf::DT_FLOAT, models::kScalar);
  f.Return({f.Op("Mul", {x, f.Read(v)}, models::kScalar)});
  model.AddSignature("serve", f, {"x"}, {"y"});
  models::BundleWriter checkpoint = model.Checkpoint();
  checkpoint.Add("variables/0/.ATTRIBUTES/VARIABLE_VALUE", models::Float(5));
  const std::string dir = TestDir() + "/differs";
  ASSERT_OK(models::WriteSavedModel(dir, model.ToProto(), checkpoint));
  converter::Options options;
  options.registry = *Plugins();
  const auto converted = Convert(dir, options, "differs");
  ASSERT_OK(converted);
  EXPECT_THAT(NotesOf(converted->report), HasSubstr("the restore function decides"));
  const auto session = Open(converted->path, *Plugins());
  ASSERT_OK(session);
  const Tensor three{{DType::kF32, Shape::Scalar()}, Buffer::Of<float>(std::vector<float>{3})};
  const auto result = Invoke(**session, {three});
  ASSERT_OK(result);
  EXPECT_EQ((*result)[0].data.As<float>()[0], 6);
}

}  // namespace
}  // namespace fusebox::testing
