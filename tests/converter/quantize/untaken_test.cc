// SPDX-License-Identifier: Apache-2.0
// Branches and loops that no calibration sample enters.
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Forks : Eight {
  const Type type = F32({1, 8}), flag = {DType::kBool, Shape::Scalar()};
  Forks() {
    for (const char* name : {"large", "small", "inner"}) {
      Function& g = Add(name);
      g.outputs = g.AddNode(Op::kNeg, {g.AddInput(type)}, {type}).results;
    }
    Function& never = Add("never");
    never.AddInput(type);
    never.outputs = {never.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  }
  // A loop inside of "large".
  void AddLoop(Function& g, ValueId x) {
    Node& loop = g.AddNode(Op::kWhile, {x}, {type},
                           Ref("cond_subgraph_index", "never", "body_subgraph_index", "inner"));
    loop.location.name = "net/loop";
    g.outputs = loop.results;
  }
};

TEST(Untaken, BranchesAndLoopsAreNoted) {
  Forks m;
  const ValueId x = m.In({1, 8});
  const ValueId yes = m.Op1(Op::kGreater, {m.In({}), m.C(5)});
  Node& fork = m.f.AddNode(Op::kIf, {yes, m.Dense(x, 8)}, {m.type},
                           Ref("then_subgraph_index", "large", "else_subgraph_index", "small"));
  fork.location.name = "net/fork";
  const ValueId forked = fork.results[0];
  m.AddLoop(*m.module.Find("large"), m.module.Find("large")->outputs[0]);
  ASSERT_EQ(m.Quantize({m.Dense(forked, 8)}), "");
  EXPECT_THAT(m.Notes(),
              AllOf(HasSubstr("no calibration sample enters function large of function main: node"),
                    HasSubstr("net/fork"), Not(HasSubstr("function small of")), Not(HasSubstr("inner"))))
      << "the loop is in a branch that is not taken";
}

TEST(Untaken, BodiesOfLoopsAreNoted) {
  Forks m;
  m.AddLoop(m.f, m.Dense(m.In({1, 8}), 8));
  ASSERT_EQ(m.Quantize({m.Dense(m.f.outputs[0], 8)}), "");
  EXPECT_THAT(m.Notes(),
              AllOf(HasSubstr("no calibration sample enters function inner of function main: node"),
                    HasSubstr("net/loop"), Not(HasSubstr("function never"))));
}

TEST(Untaken, NothingIsNotedIfAllAreEntered) {
  Forks m;
  int call = 0;
  m.fill[1] = [&](std::mt19937&, size_t) { return std::vector<float>{call++ % 2 == 0 ? 9.0F : 0.0F}; };
  const ValueId x = m.In({1, 8});
  const ValueId yes = m.Op1(Op::kGreater, {m.In({}), m.C(5)});
  const ValueId forked = m.f.AddNode(Op::kIf, {yes, m.Dense(x, 8)}, {m.type},
                                     Ref("then_subgraph_index", "large", "else_subgraph_index", "small"))
                             .results[0];
  ASSERT_EQ(m.Quantize({m.Dense(forked, 8)}), "");
  EXPECT_THAT(m.Notes(), Not(HasSubstr("no calibration sample")));
}

}  // namespace
}  // namespace fusebox::converter
