// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/rnn/rule_site.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A site with 3 features and 4 units, batch 2 and 5 steps, that the rule takes as it stands.
struct Lstm : RuleSite {
  Lstm() {
    rule = "fusebox.keras_lstm";
    name = "lstm_0";
    operands = {F32({2, 5, 3}),
                F32({2, 4}),
                F32({2, 4}),
                F32({3, 16}, FBX_TENSOR_CONST),
                F32({4, 16}, FBX_TENSOR_CONST),
                F32({16}, FBX_TENSOR_CONST)};
    results = {F32({2, 4}).Uses(1), F32({2, 5, 4}).Uses(1), F32({2, 4}).Uses(1), F32({2, 4}).Uses(1),
               F32({}).Uses(1)};
  }
};

TEST(KerasLstmRule, EmitsTransposesSplitsAndOneOp) {
  const Recorder r = Lstm().Rewritten();
  EXPECT_THAT(
      r.Lines(),
      ElementsAre(
          "TRANSPOSE(in3,[1 0])", "SPLIT([0],TRANSPOSE0.0) num_splits=4", "TRANSPOSE(in4,[1 0])",
          "SPLIT([0],TRANSPOSE2.0) num_splits=4", "SPLIT([0],in5) num_splits=4",
          "UNIDIRECTIONAL_SEQUENCE_LSTM(in0,SPLIT1.0,SPLIT1.1,SPLIT1.2,SPLIT1.3,SPLIT3.0,SPLIT3.1,SPLIT3.2,"
          "SPLIT3.3,-,-,-,SPLIT4.0,SPLIT4.1,SPLIT4.2,SPLIT4.3,-,-,in1,in2,-,-,-,-) cell_clip=0.000000 "
          "fused_activation_function=TANH proj_clip=0.000000 time_major=false",
          "STRIDED_SLICE(UNIDIRECTIONAL_SEQUENCE_LSTM5.0,[0 -1 0],[0 0 0],[1 1 1]) begin_mask=5 end_mask=5 "
          "shrink_axis_mask=2"));
  EXPECT_EQ(r.Name(r.results.at(0)), "STRIDED_SLICE6.0");
  EXPECT_EQ(r.Name(r.results.at(1)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.0");
  EXPECT_EQ(r.Name(r.results.at(2)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.1");
  EXPECT_EQ(r.Name(r.results.at(3)), "UNIDIRECTIONAL_SEQUENCE_LSTM5.2");
  EXPECT_EQ(r.Name(r.results.at(4)), "[1f]");
}

TEST(KerasLstmRule, MapsTimeMajorToTheOption) {
  Lstm lstm;
  lstm.attrs["time_major"] = true;
  lstm.operands[0] = F32({5, 2, 3});
  lstm.results[1] = F32({5, 2, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("time_major=true")));
  EXPECT_THAT(r.Lines(),
              Contains(HasSubstr("[-1 0 0],[0 0 0],[1 1 1]) begin_mask=6 end_mask=6 shrink_axis_mask=1")));
}

TEST(KerasLstmRule, ReversesTimeWhenGoingBackwards) {
  Lstm lstm;
  lstm.attrs["go_backwards"] = true;
  EXPECT_THAT(lstm.Rewritten().Lines(), Contains("REVERSE_V2(in0,[1])"));
  lstm.attrs["time_major"] = true;
  lstm.operands[0] = F32({5, 2, 3});
  lstm.results[1] = F32({5, 2, 4}).Uses(1);
  EXPECT_THAT(lstm.Rewritten().Lines(), Contains("REVERSE_V2(in0,[0])"));
}

TEST(KerasLstmRule, KeepsOnlyTheLastStepOfASequenceOfOne) {
  Lstm lstm;
  lstm.results[1] = F32({2, 1, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines().back(), HasSubstr("begin_mask=5 end_mask=7 shrink_axis_mask=0"));
  EXPECT_THAT(r.Name(r.results.at(1)), StartsWith("STRIDED_SLICE"));
}

TEST(KerasLstmRule, TakesTheWholeSequenceOfOneStep) {
  Lstm lstm;
  lstm.operands[0] = F32({2, 1, 3});
  lstm.results[1] = F32({2, 1, 4}).Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Name(r.results.at(1)), StartsWith("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}

TEST(KerasLstmRule, TakesUnknownBatchAndTime) {
  Lstm lstm;
  lstm.operands[0] = F32({-1, -1, 3});
  lstm.operands[1] = lstm.operands[2] = F32({-1, 4});
  lstm.results[1] = F32({-1, -1, 4}).Uses(1);
  EXPECT_EQ(lstm.WhyNot(), "");
}

TEST(KerasLstmRule, MakesDiagonalWeightsOfAnIndyLstm) {
  Lstm lstm;
  lstm.name = "indy_lstm_0";
  lstm.operands[4] = F32({1, 16}, FBX_TENSOR_CONST);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines(), Contains("RESHAPE(in4,[-1])"));
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("diagonal_recurrent_tensors=true")));
  Lstm full;
  full.name = "indy_lstm_0";
  EXPECT_EQ(full.WhyNot(), "SHAPE operand 4 (recurrent_kernel): has shape [4,16], expected one row");
}

// One test for each way to break the contract.
template <class Change>
std::string Refusal(const Change& change) {
  Lstm lstm;
  change(lstm);
  return lstm.WhyNot();
}

// What is special about a masked layer.
std::string MaskRefusal(const FakeTensor& mask, const FakeAttrs& attrs) {
  return Refusal([&](Lstm& one) {
    one.operands.push_back(mask);
    one.attrs = attrs;
    one.results[3].Uses(0);
  });
}
TEST(KerasLstmRule, RefusesMasksThatAreNone) {
  const FakeAttrs says = {{"zero_output_for_mask", false}};
  EXPECT_EQ(MaskRefusal({FBX_BOOL, {2, 5}}, says), "");
  EXPECT_EQ(MaskRefusal({FBX_I32, {2, 5}}, says),
            "DTYPE operand 6 (mask): is i32, only a boolean mask is supported");
  EXPECT_EQ(MaskRefusal(FakeTensor(), says),
            "DTYPE operand 6 (mask): is absent, only a boolean mask is supported");
  EXPECT_EQ(MaskRefusal({FBX_BOOL, {2, 4}}, says),
            "SHAPE operand 6 (mask): has shape [2,4], but the inputs have [2,5,3]");
}
TEST(KerasLstmRule, RefusesAMaskOfAnUnknownKind) {
  EXPECT_THAT(MaskRefusal({FBX_BOOL, {2, 5}}, {}), StartsWith("ATTR attr zero_output_for_mask: is missing"));
}
TEST(KerasLstmRule, TakesAMaskTimeFirst) {
  Lstm one;
  one.operands[0] = F32({5, 2, 3});
  one.results[1] = F32({5, 2, 4}).Uses(1);
  one.operands.push_back({FBX_BOOL, {5, 2}});
  one.attrs = {{"time_major", true}, {"zero_output_for_mask", true}};
  EXPECT_EQ(one.WhyNot(), "");
  EXPECT_THAT(one.Rewritten().Lines(), Contains(HasSubstr("time_major=false")));  // turned before and behind
  one.operands.back() = {FBX_BOOL, {2, 5}};
  EXPECT_EQ(one.WhyNot(), "SHAPE operand 6 (mask): has shape [2,5], but the inputs have [5,2,3]");
}
TEST(KerasLstmRule, ShutsTheGatesBehindTheMaskWhereTheFinalCIsRead) {
  Lstm lstm;
  lstm.operands.push_back({FBX_BOOL, {2, 5}});
  lstm.attrs["zero_output_for_mask"] = false;
  lstm.results[3].Uses(0);
  EXPECT_THAT(lstm.Rewritten().Lines(), Not(Contains(StartsWith("CONCATENATION(SPLIT"))));
  lstm.results[3].Uses(1);
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr(",[0f],[1e+37f])")));
  const auto gate = [](const std::string& number, const std::string& column) {
    return ::testing::AllOf(StartsWith("CONCATENATION(SPLIT"),
                            HasSubstr("." + number + ",[" + column + "]) axis=1"));
  };
  EXPECT_THAT(r.Lines(), Contains(gate("0", "-0.125f -0.125f -0.125f -0.125f")));
  EXPECT_THAT(r.Lines(), Contains(gate("1", "0.125f 0.125f 0.125f 0.125f")));
  EXPECT_THAT(r.Lines(), Contains(gate("2", "0f 0f 0f 0f")));
  EXPECT_THAT(r.Lines(), Contains(gate("3", "0f 0f 0f 0f")));
  EXPECT_THAT(r.Name(r.results.at(3)), StartsWith("UNIDIRECTIONAL_SEQUENCE_LSTM"));
}
TEST(KerasLstmRule, ShutsTheGatesByWeightsAsLargeAsTheirOthers) {
  Lstm lstm;
  std::vector<float> kernel(48, 0.0f);
  kernel[16 + 2] = -0.002f;  // row 1: of the gate i
  kernel[32 + 4] = 0.5f;     // of f
  kernel[7] = -3;
  kernel[9] = 100;  // of c: it counts for neither
  lstm.operands[3] = FakeTensor::Of<float>(FBX_F32, {3, 16}, kernel, FBX_TENSOR_CONST);
  lstm.operands.push_back({FBX_BOOL, {2, 5}});
  lstm.attrs["zero_output_for_mask"] = false;
  const Recorder r = lstm.Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr(".0,[-0.002f -0.002f -0.002f -0.002f]) axis=1")));
  EXPECT_THAT(r.Lines(), Contains(HasSubstr(".1,[3f 3f 3f 3f]) axis=1")));
}
TEST(KerasLstmRule, RefusesOtherOperandCounts) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands.pop_back(); }),
            "ARITY : has 5 operands, expected 6, or one more with a mask");
}
TEST(KerasLstmRule, RefusesOtherResultCounts) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.results.resize(3); }), "ARITY : has 3 results, expected 4 or 5");
}
TEST(KerasLstmRule, TakesALayerThatDoesNotSayWhatRan) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.results.pop_back(); }), "");
}
TEST(KerasLstmRule, SaysTheActivation) {
  Lstm lstm;
  lstm.attrs["activation"] = std::string("linear");
  EXPECT_THAT(lstm.Rewritten().Lines(), Contains(HasSubstr("fused_activation_function=NONE")));
}
TEST(KerasLstmRule, RefusesActivationsThatTheOpCannotSay) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.attrs["activation"] = std::string("softsign"); }),
            "ATTR attr activation: is softsign, which is not supported");
  EXPECT_EQ(Refusal([](Lstm& l) { l.attrs["recurrent_activation"] = std::string("softsign"); }),
            "ATTR attr recurrent_activation: is softsign, which is not supported");
}
TEST(KerasLstmRule, EmitsAnOpOfOursForActivationsThatTheBuiltinOneCannotSay) {
  for (const auto& [key, name] : {std::pair{"recurrent_activation", "hard_sigmoid"},
                                  {"recurrent_activation", "hard_sigmoid_of_keras_3"},
                                  {"activation", "sigmoid"}}) {
    Lstm lstm;
    lstm.attrs["activation"] = std::string("relu");
    lstm.attrs["recurrent_activation"] = std::string("sigmoid");
    lstm.attrs[key] = std::string(name);
    const Recorder r = lstm.Rewritten();
    const std::string act = std::get<std::string>(lstm.attrs["activation"]),
                      gates = std::get<std::string>(lstm.attrs["recurrent_activation"]);
    EXPECT_THAT(r.Lines(),
                Contains("fusebox.lstm(in0,SPLIT1.0,SPLIT1.1,SPLIT1.2,SPLIT1.3,SPLIT3.0,SPLIT3.1,SPLIT3.2,"
                         "SPLIT3.3,-,-,-,SPLIT4.0,SPLIT4.1,SPLIT4.2,SPLIT4.3,-,-,in1,in2) activation=" +
                         act + " recurrent_activation=" + gates + " time_major=false"));
    EXPECT_THAT(r.Name(r.results.at(0)), StartsWith("STRIDED_SLICE"));
    EXPECT_EQ(r.Name(r.results.at(1)), "fusebox.lstm5.0");
    EXPECT_EQ(r.Name(r.results.at(2)), "fusebox.lstm5.1");
    EXPECT_EQ(r.Name(r.results.at(3)), "fusebox.lstm5.2");
    lstm.results[0].Uses(0);
    const Recorder unread = lstm.Rewritten();
    EXPECT_EQ(unread.Name(unread.results.at(0)), "fusebox.lstm5.1");  // no slice, so that the body is kept
  }
}
TEST(KerasLstmRule, StaysALoopWhereBuiltinOpsAreAskedFor) {
  const auto asked = [](Lstm& l) { l.host.options()["lstm"] = std::string("builtin"); };
  EXPECT_EQ(Refusal(asked), "");
  EXPECT_EQ(Refusal([&](Lstm& l) {
              asked(l);
              l.attrs["recurrent_activation"] = std::string("hard_sigmoid");
            }),
            "OPTION option lstm: allows builtin ops only, which do not support the activations of this "
            "layer; the loop remains");
}
TEST(KerasLstmRule, NeedsGatesThatShutBehindAMaskWhereTheFinalCIsRead) {
  const auto masked = [](const char* gates, uint32_t readers) {
    return Refusal([&](Lstm& l) {
      l.operands.push_back({FBX_BOOL, {2, 5}});
      l.attrs = {{"zero_output_for_mask", false}, {"recurrent_activation", std::string(gates)}};
      l.results[3].Uses(readers);
    });
  };
  for (const char* gates : {"sigmoid", "hard_sigmoid", "hard_sigmoid_of_keras_3"})
    EXPECT_EQ(masked(gates, 1), "");
  for (const char* gates : {"tanh", "relu", "relu6", "linear"}) {
    EXPECT_EQ(masked(gates, 0), "");
    EXPECT_EQ(masked(gates, 1),
              "ATTR attr recurrent_activation: is " + std::string(gates) +
                  ", which does not reach 0 and 1, as the final c of a masked layer requires");
  }
}
TEST(KerasLstmRule, BelievesTheAttributeThatSaysWhatTheSequenceIs) {
  Lstm lstm;
  lstm.attrs["sequence"] = true;
  lstm.results[1] = F32({2, -1, 4}).Uses(1);
  EXPECT_THAT(lstm.Rewritten().Lines().size(), 7u);
  lstm.attrs["sequence"] = false;
  EXPECT_THAT(lstm.Rewritten().Lines().size(), 8u);
}
TEST(KerasLstmRule, RefusesAnAbsentOperand) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[5] = FakeTensor(); }), "ARITY operand 5 (bias): is absent");
}
TEST(KerasLstmRule, RefusesUnknownRank) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 0 (inputs): has an unknown rank");
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[2] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 2 (init_c): has an unknown rank");
}
TEST(KerasLstmRule, RefusesOtherRanks) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = F32({5, 3}); }),
            "RANK operand 0 (inputs): has shape [5,3], expected rank 3");
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[5] = F32({2, 8}, FBX_TENSOR_CONST); }),
              StartsWith("RANK operand 5 (bias)"));
}
TEST(KerasLstmRule, RefusesOtherTypes) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[0] = {FBX_F64, {2, 5, 3}}; }),
            "DTYPE operand 0 (inputs): is f64, only f32 is supported");
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[3] = {FBX_F16, {3, 16}, FBX_TENSOR_CONST}; }),
              StartsWith("DTYPE operand 3 (kernel)"));
}
TEST(KerasLstmRule, RefusesWeightsThatTheModelChanges) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({3, 16}, FBX_TENSOR_VARIABLE); }),
            "NONCONST operand 3 (kernel): is read from a variable that the model changes");
}
TEST(KerasLstmRule, RefusesComputedWeights) {
  for (const auto& [i, name] : {std::pair{3, "kernel"}, {4, "recurrent_kernel"}, {5, "bias"}}) {
    EXPECT_EQ(Refusal([i = i](Lstm& l) { l.operands[i] = FakeTensor(FBX_F32, l.operands[i].dims()); }),
              "NONCONST operand " + std::to_string(i) + " (" + name + "): is computed, not constant");
  }
}
TEST(KerasLstmRule, RefusesAKernelForOtherUnits) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({3, 12}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (kernel): has shape [3,12], but 4 units need 16 columns");
}
TEST(KerasLstmRule, RefusesAKernelForOtherFeatures) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[3] = F32({7, 16}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (kernel): has shape [7,16], but the inputs have 3 features");
}
TEST(KerasLstmRule, RefusesARecurrentKernelThatIsNotFourGates) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[4] = F32({4, 12}, FBX_TENSOR_CONST); }),
            "SHAPE operand 4 (recurrent_kernel): has shape [4,12], but 4 units need 16 columns");
}
TEST(KerasLstmRule, RefusesALayerWithoutUnits) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.operands[4] = F32({0, 0}, FBX_TENSOR_CONST); }),
              HasSubstr("has no units"));
}
TEST(KerasLstmRule, RefusesAnotherBias) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[5] = F32({8}, FBX_TENSOR_CONST); }),
            "SHAPE operand 5 (bias): has shape [8], but 4 units need 16 values");
}
TEST(KerasLstmRule, RefusesStatesOfOtherUnits) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[1] = F32({2, 5}); }),
            "SHAPE operand 1 (init_h): has shape [2,5], but there are 4 units");
}
TEST(KerasLstmRule, RefusesStatesOfAnotherBatch) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.operands[2] = F32({1, 4}); }),
            "SHAPE operand 2 (init_c): has shape [1,4], but the batch is 2");
}
TEST(KerasLstmRule, RefusesASequenceOfAnotherLength) {
  EXPECT_EQ(Refusal([](Lstm& l) { l.results[1] = F32({2, 4, 4}).Uses(1); }),
            "SHAPE result 1 (sequence): has shape [2,4,4], but the inputs have 5 steps");
}
TEST(KerasLstmRule, RefusesAReadSequenceThatMayBeTheLastStepOnly) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.results[1] = F32({2, -1, 4}).Uses(1); }),
              StartsWith("SHAPE result 1 (sequence): has an unknown"));
  EXPECT_EQ(Refusal([](Lstm& l) { l.results[1] = F32({2, -1, 4}).Uses(0); }), "");
}

TEST(KerasLstmRule, ReportsAnAttributeOfAnotherKind) {
  EXPECT_THAT(Refusal([](Lstm& l) { l.attrs["time_major"] = std::string("yes"); }),
              HasSubstr("error attr time_major"));
}

}  // namespace
}  // namespace fusebox::testing
