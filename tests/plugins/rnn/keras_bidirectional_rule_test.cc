// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plugins/rnn/rule_site.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// 3 features, batch 2, 5 steps, 4 units in each direction, that the rule takes as it stands.
struct Bidirectional : RuleSite {
  explicit Bidirectional(bool merge = false) {
    rule = "fusebox.keras_bidirectional";
    name = "keras.bidirectional";
    operands = {F32({2, 5, 3})};
    for (const int64_t u : {4, 4}) {
      for (const FakeTensor& t : {F32({2, u}), F32({2, u}), F32({3, 4 * u}, FBX_TENSOR_CONST),
                                  F32({u, 4 * u}, FBX_TENSOR_CONST), F32({4 * u}, FBX_TENSOR_CONST)})
        operands.push_back(t);
      for (const FakeTensor& t : {F32({2, u}), F32({2, 5, u}), F32({2, u}), F32({2, u})}) {
        results.push_back(t);
        results.back().Uses(1);
      }
    }
    if (merge) results.push_back(F32({2, 5, 8}).Uses(1));
    attrs["merge"] = merge;
  }
};

TEST(KerasBidirectionalRule, EmitsOneOpWithBothWeightsAndStates) {
  const Recorder r = Bidirectional().Rewritten();
  EXPECT_THAT(r.Lines(),
              Contains("BIDIRECTIONAL_SEQUENCE_LSTM(in0,"
                       "SPLIT1.0,SPLIT1.1,SPLIT1.2,SPLIT1.3,SPLIT3.0,SPLIT3.1,SPLIT3.2,SPLIT3.3,-,-,-,"
                       "SPLIT4.0,SPLIT4.1,SPLIT4.2,SPLIT4.3,-,-,"
                       "SPLIT6.0,SPLIT6.1,SPLIT6.2,SPLIT6.3,SPLIT8.0,SPLIT8.1,SPLIT8.2,SPLIT8.3,-,-,-,"
                       "SPLIT9.0,SPLIT9.1,SPLIT9.2,SPLIT9.3,-,-,in1,in2,in6,in7,-,-,-,-,-,-,-,-,-) "
                       "asymmetric_quantize_inputs=false cell_clip=0.000000 fused_activation_function=TANH "
                       "merge_outputs=false "
                       "proj_clip=0.000000 time_major=false"));
  const std::string op = "BIDIRECTIONAL_SEQUENCE_LSTM10.";
  EXPECT_EQ(r.Name(r.results.at(1)), op + "0");
  EXPECT_EQ(r.Name(r.results.at(5)), op + "1");
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(r.Name(r.results.at(2 + i)), op + std::to_string(2 + i));
    EXPECT_EQ(r.Name(r.results.at(6 + i)), op + std::to_string(4 + i));
  }
  // The backward layer's last output is at the first step of its sequence.
  EXPECT_THAT(r.Lines(), Contains("STRIDED_SLICE(" + op +
                                  "1,[0 0 0],[0 1 0],[1 1 1]) begin_mask=5 end_mask=5 shrink_axis_mask=2"));
}

TEST(KerasBidirectionalRule, MergesByTheOpWhereOtherRuntimesDoSoRightly) {
  Bidirectional one(true);
  for (FakeTensor* t :
       {&one.operands[0], &one.operands[1], &one.operands[2], &one.operands[6], &one.operands[7]})
    *t = F32(t->dims().size() == 3 ? std::vector<int64_t>{1, 5, 3} : std::vector<int64_t>{1, t->dims()[1]});
  const Recorder r = one.Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("merge_outputs=true")));
  EXPECT_THAT(r.Lines(), Contains("SLICE(BIDIRECTIONAL_SEQUENCE_LSTM10.0,[0 0 4],[-1 -1 4])"));
  EXPECT_EQ(r.Name(r.results.at(8)), "BIDIRECTIONAL_SEQUENCE_LSTM10.0");
  EXPECT_EQ(r.Name(r.results.at(2)), "BIDIRECTIONAL_SEQUENCE_LSTM10.1");
}

TEST(KerasBidirectionalRule, ConcatenatesSeveralRows) {
  const Recorder r = Bidirectional(true).Rewritten();
  EXPECT_THAT(r.Lines(), Contains(HasSubstr("merge_outputs=false")));
  const std::string op = "BIDIRECTIONAL_SEQUENCE_LSTM10.";
  EXPECT_EQ(r.Lines().back(), "CONCATENATION(" + op + "0," + op + "1) axis=2");
}

// As newer Keras declares the sequence of layers that return none: the step that each layer computed last.
TEST(KerasBidirectionalRule, CutsTheLastStepOutWhereNoOtherIsKept) {
  for (const bool time_major : {false, true}) {
    Bidirectional site;
    site.attrs["time_major"] = time_major;
    if (time_major) site.operands[0] = F32({5, 2, 3});
    for (const size_t sequence : {1u, 5u})
      site.results[sequence] =
          F32(time_major ? std::vector<int64_t>{1, 2, 4} : std::vector<int64_t>{2, 1, 4});
    const Recorder r = site.Rewritten();
    const std::string op = "STRIDED_SLICE(BIDIRECTIONAL_SEQUENCE_LSTM10.";
    const auto line = [&](uint32_t result) {
      const std::string name = r.Name(r.results.at(result));  // STRIDED_SLICE13.0
      return r.Lines().at(std::stoul(name.substr(std::string("STRIDED_SLICE").size())));
    };
    if (time_major) {
      EXPECT_EQ(line(1), op + "0,[-1 0 0],[0 0 0],[1 1 1]) begin_mask=6 end_mask=7 shrink_axis_mask=0");
      EXPECT_EQ(line(5), op + "1,[0 0 0],[1 0 0],[1 1 1]) begin_mask=6 end_mask=6 shrink_axis_mask=0");
    } else {
      EXPECT_EQ(line(1), op + "0,[0 -1 0],[0 0 0],[1 1 1]) begin_mask=5 end_mask=7 shrink_axis_mask=0");
      EXPECT_EQ(line(5), op + "1,[0 0 0],[0 1 0],[1 1 1]) begin_mask=5 end_mask=5 shrink_axis_mask=0");
    }
  }
}

TEST(KerasBidirectionalRule, CutsOneOfTwoSequences) {
  Bidirectional site;
  site.results[1] = F32({2, 1, 4}).Uses(1);
  const Recorder r = site.Rewritten();
  EXPECT_THAT(r.Name(r.results.at(1)), HasSubstr("STRIDED_SLICE"));
  EXPECT_EQ(r.Name(r.results.at(5)), "BIDIRECTIONAL_SEQUENCE_LSTM10.1");
}

TEST(KerasBidirectionalRule, WritesTimeMajor) {
  Bidirectional site;
  site.attrs["time_major"] = true;
  site.operands[0] = F32({5, 2, 3});
  site.results[1] = F32({5, 2, 4}).Uses(1);
  site.results[5] = F32({5, 2, 4}).Uses(1);
  EXPECT_THAT(site.Rewritten().Lines(), Contains(HasSubstr("time_major=true")));
}

// One test for each way to break the contract; those of a layer stand with the LSTM's rule.
template <class Change>
std::string Refusal(const Change& change) {
  Bidirectional site;
  change(site);
  return site.WhyNot();
}

TEST(KerasBidirectionalRule, RefusesOtherCounts) {
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.operands.pop_back(); }), "ARITY : has 10 operands, expected 11");
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.attrs["merge"] = true; }), "ARITY : has 8 results, expected 9");
}
TEST(KerasBidirectionalRule, NamesTheLayerThatDoesNotFit) {
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.operands[8] = F32({7, 16}, FBX_TENSOR_CONST); }),
            "SHAPE operand 8 (backward kernel): has shape [7,16], but the inputs have 3 features");
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.operands[3] = F32({3, 16}); }),
            "NONCONST operand 3 (forward kernel): is computed, not constant");
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.operands[7] = F32({3, 4}); }),
            "SHAPE operand 7 (backward init_c): has shape [3,4], but the batch is 2");
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.results[5] = F32({2, 4, 4}).Uses(1); }),
            "SHAPE result 5 (sequence): has shape [2,4,4], but the inputs have 5 steps");
}
TEST(KerasBidirectionalRule, RefusesLayersOfTwoSizes) {
  EXPECT_EQ(Refusal([](Bidirectional& b) {
              b.operands[6] = b.operands[7] = F32({2, 6});
              b.operands[8] = F32({3, 24}, FBX_TENSOR_CONST);
              b.operands[9] = F32({6, 24}, FBX_TENSOR_CONST);
              b.operands[10] = F32({24}, FBX_TENSOR_CONST);
            }),
            "SHAPE operand 9 (backward recurrent_kernel): has 6 units, but the forward layer has 4; the op "
            "requires equal sizes");
}
TEST(KerasBidirectionalRule, RefusesActivationsThatTheOpCannotSay) {
  EXPECT_THAT(Refusal([](Bidirectional& b) { b.attrs["activation"] = std::string("elu"); }),
              HasSubstr("ATTR attr activation"));
  EXPECT_EQ(Refusal([](Bidirectional& b) { b.attrs["recurrent_activation"] = std::string("hard_sigmoid"); }),
            "ATTR attr recurrent_activation: is hard_sigmoid, but the op's gates are always sigmoid");
}

}  // namespace
}  // namespace fusebox::testing
