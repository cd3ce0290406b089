// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// UNIDIRECTIONAL_SEQUENCE_RNN over x [1,2,1] with that initial state [1,2].
Node& Rnn(Function& f, ValueId state) {
  const ValueId x = f.AddInput(F32({1, 2, 1}));
  const ValueId w = f.AddConst<float>(DType::kF32, {2, 1}, {1, 2}),
                r = f.AddConst<float>(DType::kF32, {2, 2}, {0, 0, 0, 0});
  const ValueId b = f.AddConst<float>(DType::kF32, {2}, {0, 0});
  Node& node = f.AddNode(Op::kUnidirectionalSequenceRnn, {x, w, r, b, state}, {F32({1, 2, 2}), F32({1, 2})});
  f.outputs.push_back(node.results[0]);
  return node;
}

// That the session keeps.
ValueId Kept(Function& f) {
  const ValueId state = f.AddValue(F32({1, 2}));
  f.value(state).is_variable = true;
  return state;
}

const Node* Maker(const Function& f, const Node& rnn) { return Uses(f).producer(rnn.operands[4]); }

TEST(SplitState, FillsAUniformConstant) {
  Bench bench;
  Function& f = bench.Add("main");
  const Node& node = Rnn(f, f.AddConst<float>(DType::kF32, {1, 2}, {0.5f, 0.5f}));
  EXPECT_EQ(bench.Run(SplitState), "");
  const Node* fill = Maker(f, node);
  ASSERT_TRUE(fill && fill->is(Op::kFill));
  EXPECT_TRUE(f.value(node.operands[4]).is_variable);
  EXPECT_THAT(f.value(fill->operands[0]).data.As<int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(f.value(fill->operands[1]).data.As<float>(), ElementsAre(0.5f));
}

TEST(SplitState, CopiesAnyOtherConstantAndAnInput) {
  for (const bool input : {false, true}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId state = input ? f.AddInput(F32({1, 2})) : f.AddConst<float>(DType::kF32, {1, 2}, {1, 2});
    const Node& node = Rnn(f, state);
    EXPECT_EQ(bench.Run(SplitState), "");
    const Node* copy = Maker(f, node);
    ASSERT_TRUE(copy && copy->is(Op::kMul));
    EXPECT_EQ(copy->operands[0], state);
    EXPECT_FALSE(f.value(state).is_variable);
  }
}

TEST(SplitState, KeepsTheScaleOfAQuantizedState) {
  for (const bool uniform : {true, false}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId state = f.AddConst<int8_t>(DType::kI8, {1, 2}, {3, static_cast<int8_t>(uniform ? 3 : 4)});
    f.value(state).quant = std::make_shared<const Quant>(
        Quant{.scales = std::vector{0.5F}, .zero_points = std::vector<int64_t>{1}});
    const Node& node = Rnn(f, state);
    f.value(node.results[1]).type.dtype = DType::kI8;
    EXPECT_EQ(bench.Run(SplitState), "");
    EXPECT_TRUE(Maker(f, node)->is(uniform ? Op::kFill : Op::kQuantize));
    ASSERT_TRUE(f.value(node.operands[4]).quant);
    EXPECT_EQ(*f.value(node.operands[4]).quant, *f.value(state).quant);
    if (uniform) {
      EXPECT_TRUE(f.value(Maker(f, node)->operands[1]).quant) << "stock requires one scale";
    }
  }
}

TEST(SplitState, GivesEachOfTwoOpsItsOwnTensor) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId zeros = f.AddConst<float>(DType::kF32, {1, 2}, {0, 0});
  Rnn(f, zeros);
  Rnn(f, zeros);
  EXPECT_EQ(bench.Run(SplitState), "");
  ASSERT_EQ(f.nodes.size(), 4u);
  EXPECT_NE(f.nodes[1]->operands[4], f.nodes[3]->operands[4]);
}

TEST(SplitState, UsesAComputedStateInPlaceUnlessOthersReadIt) {
  for (const bool shared : {false, true}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId state = f.AddNode(Op::kTanh, {f.AddInput(F32({1, 2}))}, {F32({1, 2})}).results[0];
    const Node& node = Rnn(f, state);
    if (shared) f.outputs.push_back(state);
    EXPECT_EQ(bench.Run(SplitState), "");
    EXPECT_EQ(node.operands[4] == state, !shared);
    EXPECT_EQ(f.value(state).is_variable, !shared);
  }
}

// The final state of one op is that op's tensor: the next one needs a copy.
TEST(SplitState, CopiesTheFinalStateOfAnotherOp) {
  Bench bench;
  Function& f = bench.Add("main");
  const Node& first = Rnn(f, f.AddConst<float>(DType::kF32, {1, 2}, {0, 0}));
  const Node& second = Rnn(f, first.results[1]);
  EXPECT_EQ(bench.Run(SplitState), "");
  EXPECT_NE(second.operands[4], first.results[1]);
  EXPECT_TRUE(Maker(f, second)->is(Op::kMul));
}

TEST(SplitState, LeavesAStateThatTheSessionKeepsAndNamesIt) {
  Bench bench;
  Function& f = bench.Add("main");
  const ValueId state = Kept(f);
  const Node& node = Rnn(f, state);
  EXPECT_EQ(bench.Run(SplitState), "");
  EXPECT_EQ(node.operands[4], state);
  EXPECT_THAT(bench.report.notes, ElementsAre(AllOf(HasSubstr("UNIDIRECTIONAL_SEQUENCE_RNN"),
                                                    HasSubstr("ResetVariableTensors"))));
}

// A layer that is called twice goes on from where its first call ended.
TEST(SplitState, LeavesWhatTwoOpsKeepInOneTensor) {
  Bench bench;
  Function& f = bench.Add("main");
  const Node& first = Rnn(f, Kept(f));
  const Node& second = Rnn(f, first.results[1]);
  EXPECT_EQ(bench.Run(SplitState), "");
  EXPECT_EQ(f.nodes.size(), 2u);
  EXPECT_EQ(second.operands[4], first.results[1]);
}

TEST(SplitState, RefusesToCopyWhatItCannot) {
  Bench bench;
  Function& f = bench.Add("main");
  const Node& node = Rnn(f, f.AddInput({DType::kI16, {1, 2}}));
  f.value(node.results[1]).type.dtype = DType::kI16;
  EXPECT_THAT(bench.Run(SplitState), HasSubstr("an initial state of i16[1,2] cannot be copied"));
}

}  // namespace
}  // namespace fusebox::converter
