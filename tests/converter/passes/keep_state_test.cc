// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

// A stateful RNN of one step over x [1,1,1]: its state is the variable "h".
struct StatefulRnn {
  Bench bench;
  Function& f = bench.Add("main");
  Node* rnn = nullptr;

  explicit StatefulRnn(std::vector<float> start = {0, 0}) {
    Variable variable;
    variable.name = "h";
    variable.type = F32({1, 2});
    variable.initial = Buffer::Of<float>(start);
    bench.module.variables.push_back(variable);
    const ValueId x = f.AddInput(F32({1, 1, 1}));
    const ValueId state = Read();
    const ValueId w = f.AddConst<float>(DType::kF32, {2, 1}, {1, 2}),
                  r = f.AddConst<float>(DType::kF32, {2, 2}, {1, 0, 0, 1}),
                  b = f.AddConst<float>(DType::kF32, {2}, {0, 0});
    rnn = &f.AddNode(Op::kUnidirectionalSequenceRnn, {x, w, r, b, state}, {F32({1, 1, 2}), F32({1, 2})});
    Assign(rnn->results[1]);
    f.outputs = {rnn->results[0]};
    bench.Sign(f);
  }
  ValueId Handle(Function& g) {
    Attrs attrs;
    attrs.Set("shared_name", std::string("h"));
    return g.AddNode(Op::kVarHandle, {}, {Type{DType::kResource, Shape::Scalar()}}, attrs).results[0];
  }
  ValueId Read() { return f.AddNode(Op::kReadVariable, {Handle(f)}, {F32({1, 2})}).results[0]; }
  void Assign(ValueId v) { f.AddNode(Op::kAssignVariable, {Handle(f), v}, {}); }
  bool Kept() {
    EXPECT_EQ(bench.Run(KeepState), "");
    const Value& state = f.value(rnn->operands[4]);
    return state.is_variable && !Uses(f).producer(rnn->operands[4]);
  }
};

TEST(KeepState, MakesAVariableTensorOfAStateThatStartsAtZero) {
  StatefulRnn s;
  EXPECT_TRUE(s.Kept());
  EXPECT_EQ(s.f.nodes.size(), 1u);
}

TEST(KeepState, LeavesOtherStartsVariables) { EXPECT_FALSE(StatefulRnn({0, 1}).Kept()); }

TEST(KeepState, LeavesVariablesThatOthersReadOrWrite) {
  StatefulRnn read, written, elsewhere;
  read.f.outputs[0] = read.Read();
  EXPECT_FALSE(read.Kept());
  written.Assign(written.f.AddConst<float>(DType::kF32, {1, 2}, {1, 1}));
  EXPECT_FALSE(written.Kept());
  Function& other = elsewhere.bench.Add("other");
  other.outputs = {other.AddNode(Op::kReadVariable, {elsewhere.Handle(other)}, {F32({1, 2})}).results[0]};
  elsewhere.bench.Sign(other);
  EXPECT_FALSE(elsewhere.Kept());
}

TEST(KeepState, LeavesWhatIsNotTheFinalStateOfTheSameOp) {
  StatefulRnn s;
  for (auto& node : s.f.nodes)
    if (node->is(Op::kAssignVariable)) node->operands[1] = s.f.AddConst<float>(DType::kF32, {1, 2}, {1, 1});
  EXPECT_FALSE(s.Kept());
}

TEST(KeepState, LeavesAFunctionThatTwoSignaturesShare) {
  StatefulRnn s;
  s.bench.module.signatures.push_back(s.bench.module.signatures[0]);
  s.bench.module.signatures[1].key = "again";
  EXPECT_FALSE(s.Kept());
}

}  // namespace
}  // namespace fusebox::converter
