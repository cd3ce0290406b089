// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "host/delegate/delegate.h"

namespace fusebox::delegate {
namespace {

using ::testing::ElementsAre;

Type Floats() { return {DType::kF32, Shape({2})}; }

ValueId Make(Function& f, Op op, std::vector<ValueId> operands) {
  Node& node = f.AddNode(op, std::move(operands), {Floats()});
  if (op == Op::kCustom) node.name = "custom";
  return node.results[0];
}

std::vector<Answer> Answers(const std::vector<int>& delegates) {
  std::vector<Answer> answers;
  for (const int d : delegates) answers.push_back({.delegate = d});
  return answers;
}

// "0 (1 2) 3": the order, partitions in brackets.
std::string Text(const Schedule& schedule) {
  std::string text;
  for (const Schedule::Run& run : schedule.runs) {
    std::string part;
    for (const size_t node : run.nodes) part += (part.empty() ? "" : " ") + std::to_string(node);
    text += (text.empty() ? "" : " ") + (run.delegate < 0 ? part : "(" + part + ")");
  }
  return text;
}

TEST(Partition, DoesNotLeaveAndEnterAgain) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kAdd, {x, x});
  const ValueId b = Make(f, Op::kSub, {a, x});
  f.outputs = {Make(f, Op::kMul, {a, b})};
  auto answers = Answers({0, -1, 0});
  EXPECT_EQ(Text(Partition(f, answers)), "(0) 1 (2)");
}

TEST(Partition, JoinsBranchesThatNothingSeparates) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kAdd, {x, x});
  const ValueId b = Make(f, Op::kSub, {x, x});
  const ValueId c = Make(f, Op::kAdd, {a, x});
  f.outputs = {Make(f, Op::kMul, {c, b})};
  auto answers = Answers({0, -1, 0, 0});
  EXPECT_EQ(Text(Partition(f, answers)), "1 (0 2 3)");
}

TEST(Partition, LeavesNodesWithEffectsInTheirOrder) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kCustom, {x});
  const ValueId b = Make(f, Op::kCustom, {x});
  const ValueId c = Make(f, Op::kCustom, {x});
  f.outputs = {a, b, c};
  auto answers = Answers({0, -1, 0});
  EXPECT_EQ(Text(Partition(f, answers)), "(0) 1 (2)") << "custom ops may have effects";
}

TEST(Partition, DropsWhatAloneIsNotWorthIt) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kReshape, {x});
  const ValueId b = Make(f, Op::kSub, {a, x});
  const ValueId c = Make(f, Op::kReshape, {b});
  f.outputs = {Make(f, Op::kMul, {c, c})};
  auto answers = Answers({0, -1, 0, 0});
  answers[0].joins = answers[2].joins = true;
  EXPECT_EQ(Text(Partition(f, answers)), "0 1 (2 3)");
  EXPECT_EQ(answers[0].why, "alone it is not worth a partition");
  EXPECT_EQ(answers[0].delegate, -1);
}

TEST(Partition, LeavesOutWhatNobodyReads) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kAdd, {x, x});
  Make(f, Op::kMul, {a, x});
  f.outputs = {a};
  auto answers = Answers({0, 0});
  EXPECT_EQ(Text(Partition(f, answers)), "(0) 1");
  EXPECT_EQ(answers[1].why, "its results are not read");
}

TEST(Partition, KeepsDelegatesApart) {
  Function f("main");
  const ValueId x = f.AddInput(Floats(), "x");
  const ValueId a = Make(f, Op::kAdd, {x, x});
  f.outputs = {Make(f, Op::kMul, {a, x})};
  auto answers = Answers({1, 0});
  EXPECT_EQ(Text(Partition(f, answers)), "(0) (1)");
}

// Some graph of pure nodes, each of which reads up to two earlier values.
std::unique_ptr<Function> RandomFunction(std::mt19937& random, size_t nodes) {
  auto f = std::make_unique<Function>("main");
  std::vector<ValueId> values = {f->AddInput(Floats(), "x")};
  for (size_t i = 0; i < nodes; ++i) {
    const auto any = [&] { return values[random() % values.size()]; };
    values.push_back(Make(*f, Op::kAdd, {any(), any()}));
  }
  f->outputs = {values.begin() + 1, values.end()};
  return f;
}

// By node, the nodes that it needs, directly or not.
std::vector<std::set<size_t>> Needed(const Function& f) {
  std::vector<std::set<size_t>> needed(f.nodes.size());
  std::map<ValueId, size_t> defined;
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    for (const ValueId id : f.nodes[i]->operands) {
      if (!defined.contains(id)) continue;
      needed[i].insert(defined[id]);
      needed[i].insert(needed[defined[id]].begin(), needed[defined[id]].end());
    }
    defined[f.nodes[i]->results[0]] = i;
  }
  return needed;
}

bool Convex(const std::set<size_t>& group, const std::vector<std::set<size_t>>& needed) {
  for (const size_t last : group) {
    for (const size_t between : needed[last]) {
      if (group.contains(between)) continue;
      for (const size_t first : needed[between]) {
        if (group.contains(first)) return false;
      }
    }
  }
  return true;
}

TEST(Partition, IsConvexMaximalAndInOrderForAnyClaim) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const auto f = RandomFunction(random, 2 + random() % 30);
    std::vector<Answer> answers(f->nodes.size());
    for (Answer& answer : answers) answer.delegate = random() % 3 == 0 ? -1 : 0;
    const auto needed = Needed(*f);
    const Schedule schedule = Partition(*f, answers);
    std::set<size_t> done;
    std::vector<std::set<size_t>> groups;
    for (const Schedule::Run& run : schedule.runs) {
      const std::set<size_t> group(run.nodes.begin(), run.nodes.end());
      for (const size_t node : run.nodes) {
        EXPECT_EQ(answers[node].delegate, run.delegate);
        for (const size_t before : needed[node]) EXPECT_TRUE(done.contains(before) || group.contains(before));
      }
      EXPECT_TRUE(Convex(group, needed));
      done.insert(group.begin(), group.end());
      if (run.delegate >= 0) groups.push_back(group);
    }
    EXPECT_EQ(done.size(), f->nodes.size());
    for (size_t a = 0; a < groups.size(); ++a) {
      for (size_t b = a + 1; b < groups.size(); ++b) {
        std::set<size_t> both = groups[a];
        both.insert(groups[b].begin(), groups[b].end());
        EXPECT_FALSE(Convex(both, needed)) << "round " << round << ": " << Text(schedule);
      }
    }
  }
}

}  // namespace
}  // namespace fusebox::delegate
