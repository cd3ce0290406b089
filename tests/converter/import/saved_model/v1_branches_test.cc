// SPDX-License-Identifier: Apache-2.0
// Conditionals of TensorFlow 1 as IF, against the same choice made here.
#include <gmock/gmock.h>

#include "tests/converter/import/saved_model/v1.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace fusebox::test_models;

Tensor Bool(bool value) {
  return {{DType::kBool, fusebox::Shape::Scalar()},
          Buffer::Of<uint8_t>(std::vector<uint8_t>{static_cast<uint8_t>(value)})};
}

struct Graph : V1Graph {
  std::string x = Placeholder("x", tf::DT_FLOAT, {2});
  std::string p = Placeholder("p", tf::DT_BOOL, kScalar), q = Placeholder("q", tf::DT_BOOL, kScalar);

  std::string Times(const std::string& v, float by) { return Op("Mul", {v, Const(Float(by))}); }
  std::string Named(const std::string& v, const std::string& name) {
    return Op("Identity", {v}, tf::DT_INVALID, {}, name);
  }
};

// All combinations of p and q for x = {1, 2}; the first element of each output.
std::vector<std::vector<float>> Table(const Converted& converted) {
  std::vector<std::vector<float>> rows;
  for (const bool p : {false, true}) {
    for (const bool q : {false, true}) {
      std::vector<Tensor> inputs;
      for (const std::string& name : converted.module->signatures[0].input_names)
        inputs.push_back(name == "x" ? fusebox::converter::Floats({2}, {1, 2}) : Bool(name == "p" ? p : q));
      const auto out = Compute(converted, inputs);
      EXPECT_TRUE(out) << out.error().message << ToText(*converted.module);
      rows.emplace_back();
      for (size_t i = 0; out && i < out->size(); ++i)
        rows.back().push_back((*out)[i].type.dtype == DType::kF32
                                  ? (*out)[i].data.As<float>()[0]
                                  : static_cast<float>((*out)[i].data.As<int32_t>()[0]));
    }
  }
  return rows;
}

TEST(V1Branches, AreChosenAtRunTime) {
  Graph g;
  const Names y = g.Cond(
      "cond", g.p, [&] { return Names{g.Times(g.x, 3), g.x, g.Const(Float(7))}; },
      [&] { return Names{g.Times(g.x, -1), g.Times(g.x, 5), g.Const(Float(8))}; });
  g.Named(y[0], "a"), g.Named(y[1], "b"), g.Named(y[2], "c");
  const auto converted = ConvertFrozen(g.graph(), {"x", "p"}, {"a", "b", "c"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(Count(*converted, Op::kIf), 1);
  EXPECT_THAT(Table(*converted), ElementsAre(ElementsAre(-1, 5, 8), ElementsAre(-1, 5, 8),
                                             ElementsAre(3, 1, 7), ElementsAre(3, 1, 7)));
}

TEST(V1Branches, AreNested) {
  Graph g;
  const Names y = g.Cond(
      "cond", g.p,
      [&] {
        return g.Cond(
            "inner", g.q, [&] { return Names{g.Times(g.x, 2)}; }, [&] { return Names{g.Times(g.x, 3)}; });
      },
      [&] {
        const std::string negative = g.Times(g.x, -1);
        return g.Cond(
            "inner", g.q, [&] { return Names{g.Times(negative, 2)}; }, [&] { return Names{negative}; });
      });
  g.Named(y[0], "y");
  const auto converted = ConvertFrozen(g.graph(), {"x", "p", "q"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Table(*converted),
              ElementsAre(ElementsAre(-1), ElementsAre(-2), ElementsAre(3), ElementsAre(2)));
}

// The second conditional on the same value needs the first one's result.
TEST(V1Branches, OnOneConditionRunInTurn) {
  Graph g;
  const auto once = [&](const std::string& v, float by) {
    return g.Cond("cond", g.p, [&] { return Names{g.Times(v, by)}; }, [&] { return Names{v}; })[0];
  };
  const std::string a = once(g.x, 2), between = g.Op("Neg", {a}), b = once(between, 5);
  const std::string other = g.Cond("cond", g.q, [&] { return Names{a}; }, [&] { return Names{b}; })[0];
  g.Named(b, "b"), g.Named(other, "c");
  const auto converted = ConvertFrozen(g.graph(), {"x", "p", "q"}, {"b", "c"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Table(*converted), ElementsAre(ElementsAre(-1, -1), ElementsAre(-1, 1), ElementsAre(-10, -10),
                                             ElementsAre(-10, 2)));
}

// A Merge also returns which input it forwards.
TEST(V1Branches, TellWhichInputIsForwarded) {
  Graph g;
  const Names y = g.Cond("cond", g.p, [&] { return Names{g.x}; }, [&] { return Names{g.Times(g.x, 4)}; });
  g.Named(y[0], "y");
  g.Named(g.Output(y[0], 1, tf::DT_INT32), "which");
  const auto converted = ConvertFrozen(g.graph(), {"x", "p"}, {"y", "which"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Table(*converted),
              ElementsAre(ElementsAre(4, 0), ElementsAre(4, 0), ElementsAre(1, 1), ElementsAre(1, 1)));
}

// tf.case joins all of its branches in one Merge after optimization.
TEST(V1Branches, MayBeMoreThanTwo) {
  Graph g;
  const Names y = g.Cond(
      "cond", g.p, [&] { return Names{g.Times(g.x, 2)}; },
      [&] {
        return g.Cond(
            "inner", g.q, [&] { return Names{g.Times(g.x, 3)}; }, [&] { return Names{g.Times(g.x, 4)}; });
      });
  g.Named(y[0], "y");
  tf::GraphDef& graph = g.graph();
  std::string inner;
  std::vector<std::string> parts;
  for (tf::NodeDef& node : *graph.mutable_node()) {
    if (node.op() != "Merge") continue;
    if (parts.empty()) {
      inner = node.name();
      parts.assign(node.input().begin(), node.input().end());
      continue;
    }
    ASSERT_EQ(node.input(0), inner);
    node.set_input(0, parts[0]);
    node.add_input(parts[1]);
    (*node.mutable_attr())["N"].set_i(3);
  }
  const auto converted = ConvertFrozen(graph, {"x", "p", "q"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_THAT(Table(*converted), ElementsAre(ElementsAre(4), ElementsAre(3), ElementsAre(2), ElementsAre(2)));
}

// An assertion is a conditional whose result only control edges read.
TEST(V1Branches, OfAssertionsAreDropped) {
  Graph g;
  const Names guard = g.Cond(
      "Assert/AssertGuard", g.p, [&] { return Names{g.p}; },
      [&] {
        g.Op("Assert", {g.p, g.x}, tf::DT_BOOL, {Attr("summarize", 3)});
        return Names{g.p};
      });
  g.Named(g.Times(g.x, 2), "y");
  tf::GraphDef& graph = g.graph();
  for (tf::NodeDef& node : *graph.mutable_node())
    if (node.name() == "y") node.add_input("^" + guard[0]);
  const auto converted = ConvertFrozen(graph, {"x", "p"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(Count(*converted, Op::kIf), 0);
  EXPECT_THAT(Table(*converted)[0], ElementsAre(2));
}

TEST(V1Branches, WithAConstantConditionAreCutInsideOfOthersToo) {
  Graph g;
  const std::string no = g.Const({tf::DT_BOOL, kScalar, std::string(1, '\0'), {}});
  const Names y = g.Cond(
      "cond", g.p,
      [&] {
        return g.Cond(
            "inner", no, [&] { return Names{g.Op("NoSuchOp", {g.x})}; },
            [&] { return Names{g.Times(g.x, 3)}; });
      },
      [&] { return Names{g.x}; });
  g.Named(y[0], "y");
  const auto converted = ConvertFrozen(g.graph(), {"x", "p"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(Count(*converted, Op::kIf), 1);
  EXPECT_THAT(Table(*converted), ElementsAre(ElementsAre(1), ElementsAre(1), ElementsAre(3), ElementsAre(3)));
}

TEST(V1Branches, AreRefusedIfTheOrderOfNodesDecides) {
  Graph g;
  g.Op("Merge", {g.x, g.Times(g.x, 2)}, tf::DT_FLOAT, {Attr("N", 2)}, "y");
  const auto converted = ConvertFrozen(g.graph(), {"x"}, {"y"});
  ASSERT_FALSE(converted);
  EXPECT_THAT(converted.error().message, HasSubstr("not the two sides of one condition"));
}

TEST(V1Branches, AreNoOutputs) {
  Graph g;
  const Names y = g.Cond("cond", g.p, [&] { return Names{g.Times(g.x, 2)}; }, [&] { return Names{g.x}; });
  g.Named(y[0], "y");
  for (const char* output : {"cond/Mul", "cond/Switch_1"}) {
    const auto converted = ConvertFrozen(g.graph(), {"x", "p"}, {"y", output});
    ASSERT_FALSE(converted) << output;
    EXPECT_THAT(converted.error().message, HasSubstr("in a branch of a conditional"));
  }
}

}  // namespace
}  // namespace fusebox::converter
