// SPDX-License-Identifier: Apache-2.0
// Loops of TensorFlow 1 as WHILE, against the same loops computed here in f64.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/converter/import/saved_model/v1.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using namespace fusebox::test_models;

struct LoopGraph : V1Graph {
  std::string Add(const std::string& a, const std::string& b) { return Op("Add", {a, b}); }
  std::string Less(const std::string& a, const std::string& b) { return Op("Less", {a, b}, tf::DT_BOOL); }
  std::string Named(const std::string& v, const std::string& name) {
    return Op("Identity", {v}, tf::DT_INVALID, {}, name);
  }
};

Tensor I32Scalar(int32_t value) {
  return {{DType::kI32, fusebox::Shape::Scalar()}, Buffer::Of<int32_t>(std::vector<int32_t>{value})};
}

void ExpectFloats(const Tensor& tensor, const std::vector<double>& expected) {
  std::vector<float> values(expected.begin(), expected.end());
  EXPECT_THAT(FloatsOf(tensor), Pointwise(FloatNear(1e-5f), values));
}

TEST(V1Loops, RunAsOftenAsTheirConditionHolds) {
  LoopGraph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {2}), n = g.Placeholder("n", tf::DT_INT32, kScalar);
  const Names end = g.While(
      "while", {g.Const(Int(0)), x}, [&](const Names& v) { return g.Less(v[0], n); },
      [&](const Names& v) {
        return Names{g.Add(v[0], g.Const(Int(1))), g.Op("Mul", {v[1], g.Const(Float(0.5f))})};
      });
  g.Named(end[0], "i"), g.Named(end[1], "y");
  const auto converted = ConvertFrozen(g.graph(), {"x", "n"}, {"i", "y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(Count(*converted, Op::kWhile), 1);
  for (const int32_t n_value : {0, 1, 5}) {
    const auto out = Compute(*converted, {fusebox::converter::Floats({2}, {1, -3}), I32Scalar(n_value)});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ((*out)[0].data.As<int32_t>()[0], n_value);
    const double scale = std::pow(0.5, n_value);
    ExpectFloats((*out)[1], {scale, -3 * scale});
  }
}

// Collatz: a conditional in the body, another one in the condition.
TEST(V1Loops, HoldConditionals) {
  LoopGraph g;
  const std::string start = g.Placeholder("start", tf::DT_INT32, kScalar);
  const Names end = g.While(
      "while", {start, g.Const(Int(0))},
      [&](const Names& v) {
        const std::string above = g.Op("Greater", {v[0], g.Const(Int(1))}, tf::DT_BOOL);
        return g.Cond(
            "cond", above, [&] { return Names{g.Less(v[1], g.Const(Int(100)))}; },
            [&] { return Names{above}; })[0];
      },
      [&](const Names& v) {
        const std::string odd = g.Op("FloorMod", {v[0], g.Const(Int(2))});
        const Names next = g.Cond(
            "cond", g.Op("Equal", {odd, g.Const(Int(1))}, tf::DT_BOOL),
            [&] { return Names{g.Add(g.Op("Mul", {v[0], g.Const(Int(3))}), g.Const(Int(1)))}; },
            [&] { return Names{g.Op("FloorDiv", {v[0], g.Const(Int(2))})}; });
        return Names{next[0], g.Add(v[1], g.Const(Int(1)))};
      });
  g.Named(end[1], "steps");
  const auto converted = ConvertFrozen(g.graph(), {"start"}, {"steps"});
  ASSERT_TRUE(converted) << converted.error().message;
  for (const int32_t value : {1, 2, 6, 7, 27}) {
    int64_t at = value, steps = 0;
    for (; at > 1 && steps < 100; ++steps) at = at % 2 == 1 ? 3 * at + 1 : at / 2;
    const auto out = Compute(*converted, {I32Scalar(value)});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_EQ((*out)[0].data.As<int32_t>()[0], steps) << value;
  }
}

// sum over i < n of sum over j < i of x * i: loops in loops, and a loop in a branch.
TEST(V1Loops, AreNested) {
  LoopGraph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {1}), n = g.Placeholder("n", tf::DT_INT32, kScalar);
  const std::string p = g.Placeholder("p", tf::DT_BOOL, kScalar);
  const auto sum = [&] {
    return g.While(
        "while", {g.Const(Int(0)), g.Const(models::Zeros({1}))},
        [&](const Names& v) { return g.Less(v[0], n); },
        [&](const Names& v) {
          const std::string scaled =
              g.Op("Mul", {x, g.Op("Cast", {v[0]}, tf::DT_FLOAT,
                                   {Attr("SrcT", tf::DT_INT32), Attr("DstT", tf::DT_FLOAT)})});
          const Names inner = g.While(
              "while", {g.Const(Int(0)), v[1]}, [&](const Names& w) { return g.Less(w[0], v[0]); },
              [&](const Names& w) { return Names{g.Add(w[0], g.Const(Int(1))), g.Add(w[1], scaled)}; });
          return Names{g.Add(v[0], g.Const(Int(1))), inner[1]};
        })[1];
  };
  const Names y = g.Cond("cond", p, [&] { return Names{sum()}; }, [&] { return Names{x}; });
  g.Named(y[0], "y");
  const auto converted = ConvertFrozen(g.graph(), {"n", "p", "x"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  EXPECT_EQ(Count(*converted, Op::kWhile), 2);
  EXPECT_EQ(Count(*converted, Op::kIf), 1);
  for (const bool taken : {false, true}) {
    double expected = taken ? 0 : 0.5;
    for (int i = 0; taken && i < 4; ++i) expected += 0.5 * i * i;
    const Tensor flag = {{DType::kBool, fusebox::Shape::Scalar()},
                         Buffer::Of<uint8_t>(std::vector<uint8_t>{static_cast<uint8_t>(taken)})};
    const auto out = Compute(*converted, {I32Scalar(4), flag, fusebox::converter::Floats({1}, {0.5f})});
    ASSERT_TRUE(out) << out.error().message;
    ExpectFloats((*out)[0], {expected});
  }
}

// y[t] = x[t] + y[t - 1] / 2 with TensorArrays, in both directions of time.
TEST(V1Loops, ReadAndWriteTensorArrays) {
  for (const auto& [backwards, declared] : {std::pair(false, true), {true, true}, {false, false}}) {
    LoopGraph g;
    const std::string x = g.Placeholder("x", tf::DT_FLOAT, {4, 2}), n = g.Const(Int(4));
    const fusebox::Shape element = declared ? fusebox::Shape{2} : fusebox::Shape();  // TensorFlow 1.0: none
    V1Graph::Array in = g.TensorArray(n, tf::DT_FLOAT, element),
                   out = g.TensorArray(n, tf::DT_FLOAT, element);
    in.flow = g.Unstack(in, x);
    const Names end = g.While(
        "while", {g.Const(Int(0)), out.flow, g.Const(models::Zeros({2}))},
        [&](const Names& v) { return g.Less(v[0], n); },
        [&](const Names& v) {
          const std::string at = backwards ? g.Op("Sub", {g.Const(Int(3)), v[0]}) : v[0];
          const std::string y = g.Add(g.Read(in, at), g.Op("Mul", {v[2], g.Const(Float(0.5f))}));
          const V1Graph::Array here{out.handle, v[1], out.dtype};
          return Names{g.Add(v[0], g.Const(Int(1))), g.Write(here, at, y), y};
        });
    g.Named(g.Stack({out.handle, end[1], out.dtype}, element), "y");
    g.Named(end[2], "last");
    const auto converted = ConvertFrozen(g.graph(), {"x"}, {"last", "y"});
    ASSERT_TRUE(converted) << converted.error().message;
    EXPECT_EQ(Count(*converted, Op::kWhile), 1);
    const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7, -8};
    std::vector<double> expected(8), carried(2);
    for (int step = 0; step < 4; ++step) {
      const size_t t = static_cast<size_t>(backwards ? 3 - step : step);
      for (size_t k = 0; k < 2; ++k)
        carried[k] = expected[2 * t + k] = static_cast<double>(values[2 * t + k]) + carried[k] / 2;
    }
    const auto result = Compute(*converted, {fusebox::converter::Floats({4, 2}, values)});
    ASSERT_TRUE(result) << result.error().message;
    ExpectFloats((*result)[0], carried);
    ExpectFloats((*result)[1], expected);
  }
}

TEST(V1Loops, CollectItemsOfAnArrayThatGrows) {
  LoopGraph g;
  const std::string x = g.Placeholder("x", tf::DT_FLOAT, {2});
  const V1Graph::Array out = g.TensorArray(g.Const(Int(0)), tf::DT_FLOAT, {2}, true);
  const Names end = g.While(
      "while", {g.Const(Int(0)), out.flow}, [&](const Names& v) { return g.Less(v[0], g.Const(Int(3))); },
      [&](const Names& v) {
        const std::string next = g.Add(v[0], g.Const(Int(1)));
        const std::string scale =
            g.Op("Cast", {next}, tf::DT_FLOAT, {Attr("SrcT", tf::DT_INT32), Attr("DstT", tf::DT_FLOAT)});
        return Names{next, g.Write({out.handle, v[1], out.dtype}, v[0], g.Op("Mul", {x, scale}))};
      });
  g.Named(g.Stack({out.handle, end[1], out.dtype}, {2}), "y");
  const auto converted = ConvertFrozen(g.graph(), {"x"}, {"y"});
  ASSERT_TRUE(converted) << converted.error().message;
  const auto result = Compute(*converted, {fusebox::converter::Floats({2}, {1, -2})});
  ASSERT_TRUE(result) << result.error().message;
  ExpectFloats((*result)[0], {1, -2, 2, -4, 3, -6});
}

TEST(V1Loops, GiveNoValuesFromInside) {
  LoopGraph g;
  const std::string x = g.Placeholder("x", tf::DT_INT32, kScalar);
  const Names end = g.While(
      "while", {x}, [&](const Names& v) { return g.Less(v[0], g.Const(Int(5))); },
      [&](const Names& v) { return Names{g.Add(v[0], g.Const(Int(1)))}; });
  g.Named(end[0], "y");
  for (const char* output : {"while/Identity", "while/Merge", "while/Add", "while/NextIteration"}) {
    const auto converted = ConvertFrozen(g.graph(), {"x"}, {output});
    ASSERT_FALSE(converted) << output;
    EXPECT_THAT(converted.error().message, HasSubstr("inside of a loop")) << output;
  }
}

TEST(V1Loops, ThatAreDamagedAreRefused) {
  LoopGraph g;
  const std::string x = g.Placeholder("x", tf::DT_INT32, kScalar);
  const Names end = g.While(
      "while", {x}, [&](const Names& v) { return g.Less(v[0], g.Const(Int(5))); },
      [&](const Names& v) { return Names{g.Add(v[0], g.Const(Int(1)))}; });
  g.Named(end[0], "y");
  const auto why = [&](const std::string& node, const auto& damage) {
    tf::GraphDef graph = g.graph();
    for (tf::NodeDef& n : *graph.mutable_node())
      if (n.name() == node) damage(n);
    const auto converted = ConvertFrozen(graph, {"x"}, {"y"});
    return converted ? "" : converted.error().message;
  };
  EXPECT_THAT(why("while/LoopCond", [](tf::NodeDef& n) { n.set_op("Identity"); }), HasSubstr("LoopCond"));
  EXPECT_THAT(why("while/Exit", [](tf::NodeDef& n) { n.set_input(0, "while/Switch:1"); }),
              HasSubstr("is no loop variable"));
  EXPECT_THAT(why("while/Exit", [](tf::NodeDef& n) { n.set_input(0, "x"); }), HasSubstr("is in no loop"));
  EXPECT_THAT(why("while/NextIteration", [](tf::NodeDef& n) { n.set_op("Neg"); }), HasSubstr("form a cycle"));
  EXPECT_THAT(why("while/Enter", [](tf::NodeDef& n) { n.clear_input(); }), ::testing::Ne(""));
  EXPECT_THAT(why("while/Merge", [](tf::NodeDef& n) { n.clear_input(); }), ::testing::Ne(""));
  EXPECT_THAT(why("while/Switch", [](tf::NodeDef& n) { n.clear_input(); }), ::testing::Ne(""));
}

}  // namespace
}  // namespace fusebox::converter
