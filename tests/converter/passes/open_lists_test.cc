// SPDX-License-Identifier: Apache-2.0
// Lists of elements whose shape only a run knows: it comes from what the elements are computed from.
#include <gmock/gmock.h>

#include "tests/converter/passes/open_list.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ValueId Sum(Function& f, ValueId a, ValueId b, std::vector<int64_t> dims) {
  return f.AddNode(Op::kAdd, {a, b}, {F32(std::move(dims))}).results[0];
}

// x[i] of a tensor [3, batch, 2] that the loop takes in and leaves as it is.
TEST(OpenLists, OfWhatIsReadStepByStep) {
  OpenList bench({F32({3, -1, 2})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    const ValueId x = body.AddNode(Op::kGather, {in[0], i}, {F32({-1, 2})}).results[0];
    const ValueId w = body.AddConst<float>(DType::kF32, {3, 2}, {1, 0, 0, 1, 1, 1});
    const ValueId y = body.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {F32({-1, 3})}).results[0];
    return body.AddNode(Op::kTanh, {y}, {F32({-1, 3})}).results[0];
  });
  bench.f.outputs.resize(1);
  bench.module.signatures[0].output_names.resize(1);
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  for (const int64_t batch : {1, 2, 4}) {
    const std::vector<float> ones(static_cast<size_t>(3 * batch * 2), 1);
    const auto out = bench.Compute("main", {Floats({3, batch, 2}, ones)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].type.shape, Shape({3, batch, 3}));
    EXPECT_NEAR(FloatsOf(out[0]).back(), 0.9640, 1e-4);
  }
}

TEST(OpenLists, GrowWithTheirLoop) {
  const auto step = [](Function& body, ValueId i, std::vector<ValueId>& in) {
    const ValueId x = body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0];
    return in[1] = Sum(body, x, in[1], {-1});
  };
  for (const int32_t length : {0, 3}) {
    OpenList bench({F32({3, -1}), F32({-1})}, step, length);
    EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
    const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({2}, {10, 20})});
    ASSERT_EQ(out.size(), 3u) << ToText(bench.module);
    EXPECT_EQ(out[0].type.shape, Shape({3, 2}));
    EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 22, 14, 26, 19, 32));
  }
}

// Of two dimensions that are broadcast, the one that is not 1, whichever it is in a run.
TEST(OpenLists, OfABroadcast) {
  OpenList bench({F32({3, -1}), F32({-1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    return Sum(body, body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0], in[1], {-1});
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 12, 13, 14, 15, 16));
  out = bench.Compute("main", {Floats({3, 1}, {1, 2, 3}), Floats({2}, {10, 20})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 21, 12, 22, 13, 23));
  out = bench.Compute("main", {Floats({3, 0}, {}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].type.shape, Shape({3, 0}));
}

// What starts with one row and is broadcast to more by the first step tells nothing; what it is added to
// does.
TEST(OpenLists, OfAVariableThatIsBroadcast) {
  OpenList bench({F32({3, -1}), F32({1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    for (Type* type : {&body.value(in[1]).type}) *type = F32({-1});
    return in[1] = Sum(body, body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0], in[1], {-1});
  });
  for (const auto& node : bench.f.nodes)
    if (node->is(Op::kWhile)) bench.f.value(node->results[3]).type = F32({-1});
  bench.module.Find("loop_cond")->value(bench.module.Find("loop_cond")->inputs[3]).type = F32({-1});
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6}), Floats({1}, {10})});
  ASSERT_EQ(out.size(), 3u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(11, 12, 14, 16, 19, 22));
}

// A loop that gives its variable another shape on the way fails; it does not misplace what it writes.
TEST(OpenLists, OfAVariableThatChangesItsShape) {
  OpenList bench({F32({-1}), F32({-1})}, [](Function& body, ValueId, std::vector<ValueId>& in) {
    const ValueId item = body.AddNode(Op::kTanh, {in[1]}, {F32({-1})}).results[0];
    in[1] = in[0];
    return item;
  });
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  EXPECT_EQ(bench.Failure({Floats({2}, {1, 2}), Floats({2}, {3, 4})}), "");
  EXPECT_THAT(bench.Failure({Floats({1}, {1}), Floats({2}, {3, 4})}), HasSubstr("RESHAPE"));
}

// A loop in a loop writes to the outer one's list.
TEST(OpenLists, GoIntoInnerLoops) {
  OpenList bench({F32({3, -1})}, [](Function& body, ValueId i, std::vector<ValueId>& in) {
    return body.AddNode(Op::kGather, {in[0], i}, {F32({-1})}).results[0];
  });
  // The body's write becomes a loop that writes the same row three times.
  Function& body = *bench.module.Find("loop_body");
  size_t at = 0;
  while (!body.nodes[at]->is(Op::kTensorListSetItem)) ++at;
  const ValueId row = body.nodes[at]->operands[2], old = body.nodes[at]->results[0];
  std::unique_ptr<Node> rest = std::move(body.nodes.back());
  body.nodes.resize(at);
  const auto inner = bench.Loop(
      body, "inner", {row}, body.inputs[1],
      [](Function& f, ValueId, std::vector<ValueId>& in) {
        return f.AddNode(Op::kNeg, {in[0]}, {F32({-1})}).results[0];
      },
      false);
  body.nodes.push_back(std::move(rest));
  body.ReplaceUses(old, inner[1]);
  EXPECT_EQ(bench.Lower(), "") << ToText(bench.module);
  const auto out = bench.Compute("main", {Floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_THAT(FloatsOf(out[0]), ElementsAre(-5, -6, -5, -6, -5, -6));
}

// Items whose sizes need not be the same are not told by the first of them.
TEST(OpenLists, RefuseItemsThatMayDiffer) {
  for (const bool same : {true, false}) {
    Bench bench;
    Function& f = bench.Add("main");
    const ValueId shape = f.AddConst<int32_t>(DType::kI32, {1}, {-1}),
                  two = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
    const ValueId x = f.AddInput(F32({-1})), y = f.AddInput(F32({-1}));
    ValueId list = f.AddNode(Op::kTensorListReserve, {shape, two}, {kListType}).results[0];
    const ValueId twice = Sum(f, x, x, {-1});
    for (const auto& [i, item] : {std::pair(0, x), std::pair(1, same ? twice : y)}) {
      const ValueId at = f.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {i});
      list = f.AddNode(Op::kTensorListSetItem, {list, at, item}, {kListType}).results[0];
    }
    f.outputs = f.AddNode(Op::kTensorListStack, {list, shape}, {F32({2, -1})}).results;
    bench.Sign(f);
    EXPECT_EQ(bench.Run(LowerTensorLists), "");
    if (!same) {
      EXPECT_THAT(bench.Notes(), HasSubstr("not known"));
      continue;
    }
    EXPECT_EQ(bench.Notes(), "");
    const auto out = bench.Compute("main", {Floats({3}, {1, 2, 3}), Floats({1}, {0})});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_THAT(FloatsOf(out[0]), ElementsAre(1, 2, 3, 2, 4, 6));
  }
}

}  // namespace
}  // namespace fusebox::converter
