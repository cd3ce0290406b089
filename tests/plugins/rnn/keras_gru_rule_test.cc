// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/rnn/rule_site.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A site with 3 features and 4 units, batch 2 and 5 steps, that the rule takes as it stands.
struct Gru : RuleSite {
  explicit Gru(bool reset_after = true) {
    rule = "fusebox.keras_gru";
    name = "gru_0";
    operands = {F32({2, 5, 3}), F32({2, 4}), F32({3, 12}, FBX_TENSOR_CONST), F32({4, 12}, FBX_TENSOR_CONST),
                reset_after ? F32({2, 12}, FBX_TENSOR_CONST) : F32({12}, FBX_TENSOR_CONST)};
    results = {F32({2, 4}).Uses(1), F32({2, 5, 4}).Uses(1), F32({2, 4}).Uses(1), F32({}).Uses(1)};
  }
};

TEST(KerasGruRule, EmitsTransposesAndOneOp) {
  const Recorder r = Gru().Rewritten();
  EXPECT_THAT(
      r.Lines(),
      ElementsAre("TRANSPOSE(in2,[1 0])", "TRANSPOSE(in3,[1 0])", "SPLIT([0],in4) num_splits=2",
                  "RESHAPE(SPLIT2.0,[-1])", "RESHAPE(SPLIT2.1,[-1])",
                  "fusebox.gru(in0,in1,TRANSPOSE0.0,TRANSPOSE1.0,RESHAPE3.0,RESHAPE4.0) activation=tanh "
                  "recurrent_activation=sigmoid reset_after=true time_major=false",
                  "STRIDED_SLICE(fusebox.gru5.0,[0 -1 0],[0 0 0],[1 1 1]) begin_mask=5 end_mask=5 "
                  "shrink_axis_mask=2"));
  EXPECT_EQ(r.Name(r.results.at(0)), "STRIDED_SLICE6.0");
  EXPECT_EQ(r.Name(r.results.at(1)), "fusebox.gru5.0");
  EXPECT_EQ(r.Name(r.results.at(2)), "fusebox.gru5.1");
  EXPECT_EQ(r.Name(r.results.at(3)), "[1f]");
}

TEST(KerasGruRule, TellsByTheBiasWhereTheResetGateIsApplied) {
  EXPECT_THAT(Gru(false).Rewritten().Lines(),
              Contains("fusebox.gru(in0,in1,TRANSPOSE0.0,TRANSPOSE1.0,in4,-) activation=tanh "
                       "recurrent_activation=sigmoid reset_after=false time_major=false"));
  Gru said(false);
  said.attrs["reset_after"] = false;
  EXPECT_EQ(said.WhyNot(), "");
}

TEST(KerasGruRule, MapsTimeMajorAndReversesTimeWhenGoingBackwards) {
  Gru gru;
  gru.attrs["time_major"] = true;
  gru.attrs["go_backwards"] = true;
  gru.operands[0] = F32({5, 2, 3});
  gru.results[1] = F32({5, 2, 4}).Uses(1);
  const Recorder r = gru.Rewritten();
  EXPECT_THAT(r.Lines(), Contains("REVERSE_V2(in0,[0])"));
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("time_major=true")));
}

TEST(KerasGruRule, KeepsOnlyTheLastStepOfASequenceOfOne) {
  Gru gru;
  gru.results[1] = F32({2, 1, 4}).Uses(1);
  EXPECT_THAT(gru.Rewritten().Lines().back(), HasSubstr("begin_mask=5 end_mask=7 shrink_axis_mask=0"));
}

TEST(KerasGruRule, TakesALayerThatDoesNotSayWhatRan) {
  Gru gru;
  gru.results.pop_back();
  EXPECT_EQ(gru.Rewritten().results.size(), 3u);
}

TEST(KerasGruRule, SaysTheActivations) {
  Gru gru;
  gru.attrs["activation"] = std::string("relu");
  gru.attrs["recurrent_activation"] = std::string("linear");
  EXPECT_THAT(gru.Rewritten().Lines(), Contains(HasSubstr("activation=relu recurrent_activation=linear")));
}

// One test for each way to break the contract.
template <class Change>
std::string Refusal(const Change& change) {
  Gru gru;
  change(gru);
  return gru.WhyNot();
}

TEST(KerasGruRule, LeavesTheLoopWhereBuiltinOpsAreAskedFor) {
  EXPECT_EQ(Refusal([](Gru& g) { g.host.options()["gru"] = std::string("builtin"); }),
            "OPTION option gru: allows builtin ops only; the loop remains");
}
// What is special about a masked layer.
std::string MaskRefusal(const FakeTensor& mask, const FakeAttrs& attrs) {
  return Refusal([&](Gru& one) {
    one.operands.push_back(mask);
    one.attrs = attrs;
  });
}
TEST(KerasGruRule, RefusesMasksThatAreNone) {
  const FakeAttrs says = {{"zero_output_for_mask", false}};
  EXPECT_EQ(MaskRefusal({FBX_BOOL, {2, 5}}, says), "");
  EXPECT_EQ(MaskRefusal({FBX_I32, {2, 5}}, says),
            "DTYPE operand 5 (mask): is i32, only a boolean mask is supported");
  EXPECT_EQ(MaskRefusal(FakeTensor(), says),
            "DTYPE operand 5 (mask): is absent, only a boolean mask is supported");
  EXPECT_EQ(MaskRefusal({FBX_BOOL, {2, 4}}, says),
            "SHAPE operand 5 (mask): has shape [2,4], but the inputs have [2,5,3]");
}
TEST(KerasGruRule, RefusesAMaskOfAnUnknownKind) {
  EXPECT_THAT(MaskRefusal({FBX_BOOL, {2, 5}}, {}), StartsWith("ATTR attr zero_output_for_mask: is missing"));
}
TEST(KerasGruRule, TakesAMaskTimeFirst) {
  Gru one;
  one.operands[0] = F32({5, 2, 3});
  one.results[1] = F32({5, 2, 4}).Uses(1);
  one.operands.push_back({FBX_BOOL, {5, 2}});
  one.attrs = {{"time_major", true}, {"zero_output_for_mask", true}};
  EXPECT_EQ(one.WhyNot(), "");
  EXPECT_THAT(one.Rewritten().Lines(), Contains(HasSubstr("time_major=false")));  // turned before and behind
  one.operands.back() = {FBX_BOOL, {2, 5}};
  EXPECT_EQ(one.WhyNot(), "SHAPE operand 5 (mask): has shape [2,5], but the inputs have [5,2,3]");
}
TEST(KerasGruRule, RefusesOtherOperandCounts) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands.pop_back(); }),
            "ARITY : has 4 operands, expected 5, or one more with a mask");
}
TEST(KerasGruRule, RefusesOtherResultCounts) {
  EXPECT_EQ(Refusal([](Gru& g) { g.results.resize(2); }), "ARITY : has 2 results, expected 3 or 4");
}
TEST(KerasGruRule, RefusesAnAbsentOperand) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[4] = FakeTensor(); }), "ARITY operand 4 (bias): is absent");
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[1] = FakeTensor(); }), "ARITY operand 1 (init_h): is absent");
}
TEST(KerasGruRule, RefusesUnknownRanks) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[0] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 0 (inputs): has an unknown rank");
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[4] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 4 (bias): has an unknown rank");
}
TEST(KerasGruRule, RefusesOtherRanks) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[0] = F32({5, 3}); }),
            "RANK operand 0 (inputs): has shape [5,3], expected rank 3");
  EXPECT_EQ(Refusal([](Gru& g) { g.attrs["reset_after"] = false; }),
            "RANK operand 4 (bias): has shape [2,12], expected rank 1");
}
TEST(KerasGruRule, RefusesOtherTypes) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[3] = {FBX_F16, {4, 12}, FBX_TENSOR_CONST}; }),
            "DTYPE operand 3 (recurrent_kernel): is f16, only f32 is supported");
}
TEST(KerasGruRule, RefusesWeightsThatTheModelChanges) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[2] = F32({3, 12}, FBX_TENSOR_VARIABLE); }),
            "NONCONST operand 2 (kernel): is read from a variable that the model changes");
}
TEST(KerasGruRule, RefusesComputedWeights) {
  for (const auto& [i, name] : {std::pair{2, "kernel"}, {3, "recurrent_kernel"}, {4, "bias"}}) {
    EXPECT_EQ(Refusal([i = i](Gru& g) { g.operands[i] = FakeTensor(FBX_F32, g.operands[i].dims()); }),
              "NONCONST operand " + std::to_string(i) + " (" + name + "): is computed, not constant");
  }
}
TEST(KerasGruRule, RefusesKernelsOfOtherSizes) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[2] = F32({3, 16}, FBX_TENSOR_CONST); }),
            "SHAPE operand 2 (kernel): has shape [3,16], but 4 units need 12 columns");
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[3] = F32({4, 16}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (recurrent_kernel): has shape [4,16], but 4 units need 12 columns");
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[2] = F32({7, 12}, FBX_TENSOR_CONST); }),
            "SHAPE operand 2 (kernel): has shape [7,12], but the inputs have 3 features");
  EXPECT_THAT(Refusal([](Gru& g) { g.operands[3] = F32({0, 0}, FBX_TENSOR_CONST); }),
              HasSubstr("has no units"));
}
TEST(KerasGruRule, RefusesAnotherBias) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[4] = F32({2, 8}, FBX_TENSOR_CONST); }),
            "SHAPE operand 4 (bias): has shape [2,8], but 4 units need 12 values");
  EXPECT_THAT(Refusal([](Gru& g) { g.operands[4] = F32({3, 12}, FBX_TENSOR_CONST); }),
              StartsWith("SHAPE operand 4 (bias): has 3 rows"));
}
TEST(KerasGruRule, RefusesAStateOfOtherSizes) {
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[1] = F32({2, 5}); }),
            "SHAPE operand 1 (init_h): has shape [2,5], but there are 4 units");
  EXPECT_EQ(Refusal([](Gru& g) { g.operands[1] = F32({1, 4}); }),
            "SHAPE operand 1 (init_h): has shape [1,4], but the batch is 2");
}
TEST(KerasGruRule, RefusesASequenceOfAnotherLength) {
  EXPECT_EQ(Refusal([](Gru& g) { g.results[1] = F32({2, 4, 4}).Uses(1); }),
            "SHAPE result 1 (sequence): has shape [2,4,4], but the inputs have 5 steps");
}
TEST(KerasGruRule, RefusesAReadSequenceThatMayBeTheLastStepOnly) {
  EXPECT_THAT(Refusal([](Gru& g) { g.results[1] = F32({2, -1, 4}).Uses(1); }),
              StartsWith("SHAPE result 1 (sequence): has an unknown"));
}
TEST(KerasGruRule, RefusesOtherActivations) {
  EXPECT_EQ(Refusal([](Gru& g) { g.attrs["activation"] = std::string("elu"); }),
            "ATTR attr activation: is elu, which is not supported");
  EXPECT_EQ(Refusal([](Gru& g) { g.attrs["recurrent_activation"] = std::string("softplus"); }),
            "ATTR attr recurrent_activation: is softplus, which is not supported");
}

}  // namespace
}  // namespace fusebox::testing
