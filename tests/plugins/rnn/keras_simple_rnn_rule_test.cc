// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/rnn/rule_site.h"

namespace fusebox::testing {
namespace {

using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A site with 3 features and 4 units, batch 2 and 5 steps, that the rule takes as it stands.
struct SimpleRnn : RuleSite {
  SimpleRnn() {
    rule = "fusebox.keras_simple_rnn";
    name = "keras.simple_rnn";
    operands = {F32({2, 5, 3}), F32({2, 4}), F32({3, 4}, FBX_TENSOR_CONST), F32({4, 4}, FBX_TENSOR_CONST),
                F32({4}, FBX_TENSOR_CONST)};
    results = {F32({2, 4}).Uses(1), F32({2, 5, 4}).Uses(1), F32({2, 4}).Uses(1)};
  }
};

TEST(KerasSimpleRnnRule, EmitsTransposesAndOneOp) {
  const Recorder r = SimpleRnn().Rewritten();
  EXPECT_THAT(r.Lines(),
              ElementsAre("TRANSPOSE(in2,[1 0])", "TRANSPOSE(in3,[1 0])",
                          "UNIDIRECTIONAL_SEQUENCE_RNN(in0,TRANSPOSE0.0,TRANSPOSE1.0,in4,in1) "
                          "asymmetric_quantize_inputs=false fused_activation_function=TANH time_major=false",
                          "STRIDED_SLICE(UNIDIRECTIONAL_SEQUENCE_RNN2.0,[0 -1 0],[0 0 0],[1 1 1]) "
                          "begin_mask=5 end_mask=5 shrink_axis_mask=2"));
  EXPECT_EQ(r.Name(r.results.at(1)), "UNIDIRECTIONAL_SEQUENCE_RNN2.0");
  EXPECT_EQ(r.Name(r.results.at(2)), "UNIDIRECTIONAL_SEQUENCE_RNN2.1");
}

TEST(KerasSimpleRnnRule, SaysActivationTimeMajorAndDirection) {
  for (const auto& [keras, builtin] :
       {std::pair{"relu", "RELU"}, {"relu6", "RELU6"}, {"linear", "NONE"}, {"tanh", "TANH"}}) {
    SimpleRnn rnn;
    rnn.attrs["activation"] = std::string(keras);
    EXPECT_THAT(rnn.Rewritten().Lines(),
                Contains(HasSubstr(std::string("fused_activation_function=") + builtin)));
  }
  SimpleRnn rnn;
  rnn.attrs["time_major"] = true;
  rnn.attrs["go_backwards"] = true;
  rnn.operands[0] = F32({5, 2, 3});
  rnn.results[1] = F32({5, 2, 4}).Uses(1);
  EXPECT_THAT(rnn.Rewritten().Lines(), Contains("REVERSE_V2(in0,[0])"));
  EXPECT_THAT(rnn.Rewritten().Lines(), Contains(HasSubstr("time_major=true")));
}

// One test for each way to break the contract.
template <class Change>
std::string Refusal(const Change& change) {
  SimpleRnn rnn;
  change(rnn);
  return rnn.WhyNot();
}

TEST(KerasSimpleRnnRule, RefusesAMask) {
  EXPECT_THAT(Refusal([](SimpleRnn& r) { r.operands.push_back({FBX_BOOL, {2, 5}}); }),
              StartsWith("ATTR attr zero_output_for_mask: is missing"));
}
TEST(KerasSimpleRnnRule, MovesTheStepsThatCountToTheFront) {
  SimpleRnn rnn;
  rnn.operands.push_back({FBX_BOOL, {2, 5}});
  rnn.attrs["zero_output_for_mask"] = true;
  const Recorder r = rnn.Rewritten();
  EXPECT_THAT(
      r.Lines(),
      ElementsAre("SELECT_V2(in5,[1],[0])", "CUMSUM(SELECT_V20.0,[1]) exclusive=false reverse=false",
                  "CUMSUM(SELECT_V20.0,[1]) exclusive=false reverse=true", "MUL(CUMSUM2.0,SELECT_V20.0)",
                  "TOPK_V2(MUL3.0,[5])", "GATHER(in0,TOPK_V24.1) axis=1 batch_dims=1", _, _,
                  StartsWith("UNIDIRECTIONAL_SEQUENCE_RNN(GATHER5.0,"), _, "MUL(CUMSUM1.0,SELECT_V20.0)",
                  "GATHER(PAD9.0,MUL10.0) axis=1 batch_dims=1", _, _, _, _, _, _));
}
TEST(KerasSimpleRnnRule, RefusesOtherCounts) {
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands.pop_back(); }),
            "ARITY : has 4 operands, expected 5, or one more with a mask");
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.results.pop_back(); }), "ARITY : has 2 results, expected 3 or 4");
}
TEST(KerasSimpleRnnRule, RefusesOtherRanksAndTypes) {
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[4] = F32({2, 4}, FBX_TENSOR_CONST); }),
            "RANK operand 4 (bias): has shape [2,4], expected rank 1");
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[1] = {FBX_F64, {2, 4}}; }),
            "DTYPE operand 1 (init_h): is f64, only f32 is supported");
}
TEST(KerasSimpleRnnRule, RefusesComputedWeights) {
  for (const auto& [i, name] : {std::pair{2, "kernel"}, {3, "recurrent_kernel"}, {4, "bias"}}) {
    EXPECT_EQ(Refusal([i = i](SimpleRnn& r) { r.operands[i] = FakeTensor(FBX_F32, r.operands[i].dims()); }),
              "NONCONST operand " + std::to_string(i) + " (" + name + "): is computed, not constant");
  }
}
TEST(KerasSimpleRnnRule, RefusesOtherSizes) {
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[2] = F32({3, 8}, FBX_TENSOR_CONST); }),
            "SHAPE operand 2 (kernel): has shape [3,8], but 4 units need 4 columns");
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[3] = F32({4, 8}, FBX_TENSOR_CONST); }),
            "SHAPE operand 3 (recurrent_kernel): has shape [4,8], but 4 units need 4 columns");
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[4] = F32({5}, FBX_TENSOR_CONST); }),
            "SHAPE operand 4 (bias): has shape [5], but 4 units need 4 values");
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.operands[1] = F32({3, 4}); }),
            "SHAPE operand 1 (init_h): has shape [3,4], but the batch is 2");
}
TEST(KerasSimpleRnnRule, RefusesASequenceOfAnotherLength) {
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.results[1] = F32({2, 4, 4}).Uses(1); }),
            "SHAPE result 1 (sequence): has shape [2,4,4], but the inputs have 5 steps");
}
TEST(KerasSimpleRnnRule, RefusesOtherActivations) {
  EXPECT_EQ(Refusal([](SimpleRnn& r) { r.attrs["activation"] = std::string("sigmoid"); }),
            "ATTR attr activation: is sigmoid, which the fused op does not support");
}

}  // namespace
}  // namespace fusebox::testing
