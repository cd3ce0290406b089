// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/plugins/rnn/rule_site.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint32_t kConst = FBX_TENSOR_CONST;

// Batch 2, 3 inputs, 4 cells, no projection, no states.
struct Cell : RuleSite {
  explicit Cell(std::string of = "lingvo.LSTMCellSimple") {
    rule = "fusebox.lingvo_lstm";
    name = std::move(of);
    const bool coupled = name.find(',') != name.npos;
    operands = {F32({2, 3}), F32({7, coupled ? 12 : 16}, kConst), F32({coupled ? 12 : 16}, kConst),
                F32({}, kConst)};
    if (name.find("LayerNormalized") != name.npos) operands.push_back(F32({16}, kConst));
    results = {F32({2, 4}).Uses(1)};
  }
  Cell& WithProjection() {
    operands[1] = F32({5, operands[1].dims()[1]}, kConst);
    operands[3] = F32({4, 2}, kConst);
    results[0] = F32({2, 2}).Uses(1);
    return *this;
  }
  Cell& WithStates() {
    const int64_t outputs = results[0].dims()[1];
    operands.push_back(F32({2, outputs}));
    operands.push_back(F32({2, 4}));
    results.push_back(F32({2, 4}).Uses(1));
    return *this;
  }
};

TEST(LingvoRule, SlicesTheTransposedWeightInItsOwnGateOrder) {
  const Recorder r = Cell().WithStates().Rewritten();
  EXPECT_THAT(
      r.Lines(),
      ElementsAre("TRANSPOSE(in1,[1 0])", "SLICE(TRANSPOSE0.0,[0 0],[4 3])",
                  "SLICE(TRANSPOSE0.0,[0 3],[4 4])", "SLICE(in2,[0],[4])", "SLICE(TRANSPOSE0.0,[4 0],[4 3])",
                  "SLICE(TRANSPOSE0.0,[4 3],[4 4])", "SLICE(in2,[4],[4])", "SLICE(TRANSPOSE0.0,[8 0],[4 3])",
                  "SLICE(TRANSPOSE0.0,[8 3],[4 4])", "SLICE(in2,[8],[4])", "SLICE(TRANSPOSE0.0,[12 0],[4 3])",
                  "SLICE(TRANSPOSE0.0,[12 3],[4 4])", "SLICE(in2,[12],[4])",
                  "LSTM(in0,SLICE4.0,SLICE7.0,SLICE1.0,SLICE10.0,SLICE5.0,SLICE8.0,SLICE2.0,SLICE11.0,-,-,-,"
                  "SLICE6.0,SLICE9.0,SLICE3.0,SLICE12.0,-,-,in4,in5,-,-,-,-) cell_clip=0.000000 "
                  "fused_activation_function=TANH proj_clip=0.000000"));
  EXPECT_EQ(r.Name(r.results.at(0)), "LSTM13.0");
  EXPECT_EQ(r.Name(r.results.at(1)), "LSTM13.2");
}

TEST(LingvoRule, LeavesTheInputGateOutOfACoupledCell) {
  const auto lines = Cell("LayerNormalizedLSTMCellSimple,CoupleInputForgetGates")
                         .WithProjection()
                         .WithStates()
                         .Rewritten()
                         .Lines();
  // Cell, forget, output; the scales stand where four gates have them.
  EXPECT_THAT(lines, Contains("SLICE(TRANSPOSE0.0,[8 3],[4 2])"));
  EXPECT_THAT(lines, Contains("SLICE(in4,[12],[4])"));
  EXPECT_THAT(lines, Contains("TRANSPOSE(in3,[1 0])"));
  EXPECT_EQ(
      lines.back(),
      "LSTM(in0,-,SLICE4.0,SLICE1.0,SLICE7.0,-,SLICE5.0,SLICE2.0,SLICE8.0,-,-,-,-,SLICE6.0,SLICE3.0,SLICE9.0,"
      "TRANSPOSE13.0,-,in5,in6,-,SLICE11.0,SLICE10.0,SLICE12.0) cell_clip=0.000000 "
      "fused_activation_function=TANH proj_clip=0.000000");
}

TEST(LingvoRule, StartsFromZerosOfTheBatch) {
  EXPECT_THAT(Cell().Rewritten().Lines().back(),
              HasSubstr("[0f 0f 0f 0f 0f 0f 0f 0f],[0f 0f 0f 0f 0f 0f 0f 0f]"));
  Cell open;
  open.operands[0] = F32({-1, 3});
  EXPECT_THAT(open.Rewritten().Lines(), Contains(HasSubstr("ZEROS_LIKE(")));
}

TEST(LingvoRule, TakesClipsFromTheAttributes) {
  Cell cell;
  cell.WithProjection();
  cell.attrs = {{"cell_clip", 10.0}, {"proj_clip", 3.0}};
  EXPECT_THAT(cell.Rewritten().Lines().back(),
              AllOf(HasSubstr("cell_clip=10.0"), HasSubstr("proj_clip=3.0")));
}

TEST(LingvoRule, TakesEverySpellingOfTheName) {
  for (const char* name : {"LSTMCellSimple", "lingvo.LSTMCellSimple", "LayerNormalizedLSTMCellSimple",
                           "LayerNormalizedLstmCellSimple", "lingvo.LayerNormalizedLstmCellSimple",
                           "LSTMCellSimple, CoupleInputForgetGates"})
    EXPECT_EQ(Cell(name).WhyNot(), "") << name;
}

TEST(LingvoRule, APlainCellMayBringAScaleThatIsNotRead) {
  Cell cell;
  cell.operands.push_back(F32({1}));
  EXPECT_EQ(cell.WhyNot(), "");
  EXPECT_EQ(cell.WithStates().WhyNot(), "");
}

// One test for each way to break the contract.
std::string Refusal(const std::function<void(Cell&)>& change, const char* name = "lingvo.LSTMCellSimple") {
  Cell cell(name);
  change(cell);
  return cell.WhyNot();
}
constexpr const char* kNorm = "LayerNormalizedLSTMCellSimple";

TEST(LingvoRule, RefusesOtherCellsAndUnknownTokens) {
  EXPECT_EQ(Refusal([](Cell& c) { c.name = "LSTMCellSimpleDeterministic"; }),
            "NAME LSTMCellSimpleDeterministic: is not a Lingvo cell");
  EXPECT_EQ(Refusal([](Cell& c) { c.name = "lingvo.LSTMCellSimple,Peephole"; }),
            "NAME lingvo.LSTMCellSimple,Peephole: \"Peephole\" is unknown");
}
TEST(LingvoRule, RefusesOtherOperandCounts) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands.pop_back(); }),
            "ARITY : has 3 operands, expected 4 or 5, or two more with states");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands.push_back(F32({2, 4})); }, kNorm),
            "ARITY : has 6 operands, expected 5, or 7 with states");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands.pop_back(); }, kNorm),
            "ARITY : has 4 operands, expected 5, or 7 with states");
}
TEST(LingvoRule, RefusesOtherResultCounts) {
  EXPECT_EQ(Refusal([](Cell& c) { c.results.push_back(c.results[0]); }), "ARITY : has 2 results, expected 1");
  EXPECT_EQ(Refusal([](Cell& c) { c.WithStates().results.pop_back(); }), "ARITY : has 1 results, expected 2");
}
TEST(LingvoRule, RefusesAnAbsentOperand) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[2] = FakeTensor(); }), "ARITY operand 2 (bias): is absent");
}
TEST(LingvoRule, RefusesOtherTypes) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[0] = {FBX_F16, {2, 3}}; }),
            "DTYPE operand 0 (input): is f16, only f32 is supported");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[3] = {FBX_I32, {}}; }),
            "DTYPE operand 3 (projection): is i32, only f32 is supported");
}
TEST(LingvoRule, RefusesOtherAndUnknownRanks) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[0] = F32({1, 2, 3}); }),
            "RANK operand 0 (input): has shape [1,2,3], expected rank 2");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[3] = FakeTensor::Unranked(FBX_F32); }),
            "RANK operand 3 (projection): has an unknown rank");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[3] = F32({4, 2, 1}, kConst); }),
            "RANK operand 3 (projection): has shape [4,2,1], expected rank 2");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[4] = F32({4, 4}, kConst); }, kNorm),
            "RANK operand 4: has shape [4,4], expected rank 1");
}
TEST(LingvoRule, RefusesComputedWeights) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[1] = F32({7, 16}); }),
            "NONCONST operand 1 (weight): is computed, not constant");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[2] = F32({16}); }),
            "NONCONST operand 2 (bias): is computed, not constant");
  EXPECT_EQ(Refusal([](Cell& c) { c.WithProjection().operands[3] = F32({4, 2}); }),
            "NONCONST operand 3 (projection): is computed, not constant");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[4] = F32({16}); }, kNorm),
            "NONCONST operand 4: is computed, not constant");
}
TEST(LingvoRule, RefusesSlicesOutOfRange) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[1] = F32({7, 15}, kConst); }),
            "SHAPE operand 1 (weight): has shape [7,15], expected 4 gates of columns");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[1] = F32({4, 16}, kConst); }),
            "SHAPE operand 1 (weight): has shape [4,16], but 4 rows belong to the outputs, so none is left "
            "for the input");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[2] = F32({12}, kConst); }),
            "SHAPE operand 2 (bias): has shape [12], but the gates need 16");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[4] = F32({12}, kConst); }, kNorm),
            "SHAPE operand 4: has shape [12], but four gates need 16");
}
TEST(LingvoRule, RefusesAProjectionOfOtherCells) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[3] = F32({3, 2}, kConst); }),
            "SHAPE operand 3 (projection): has shape [3,2], but the cells are 4");
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[3] = F32({4, 0}, kConst); }),
            "SHAPE operand 3 (projection): has no outputs");
}
TEST(LingvoRule, RefusesAnInputOfAnotherWidth) {
  EXPECT_EQ(Refusal([](Cell& c) { c.operands[0] = F32({2, 4}); }),
            "SHAPE operand 0 (input): has shape [2,4], but the input rows of the weight are 3");
}
TEST(LingvoRule, RefusesStatesThatDoNotFit) {
  EXPECT_EQ(Refusal([](Cell& c) { c.WithStates().operands[4] = F32({2, 5}); }),
            "SHAPE operand 4: has shape [2,5], but this state has 4");
  EXPECT_EQ(Refusal([](Cell& c) { c.WithStates().operands[5] = F32({1, 4}); }),
            "SHAPE operand 5: has shape [1,4], but the batch is 2");
}
TEST(LingvoRule, RefusesClipsThatTheOpCannotSay) {
  EXPECT_EQ(Refusal([](Cell& c) { c.attrs["cell_clip"] = -1.0; }),
            "ATTR attr cell_clip: is negative or not a number");
  EXPECT_EQ(Refusal([](Cell& c) { c.attrs["proj_clip"] = -1.0; }),
            "ATTR attr proj_clip: is negative or not a number");
  EXPECT_THAT(Refusal([](Cell& c) { c.attrs["proj_clip"] = 1.0; }),
              StartsWith("CLIP : the output is clipped"));
}

}  // namespace
}  // namespace fusebox::testing
