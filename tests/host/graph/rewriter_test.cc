// SPDX-License-Identifier: Apache-2.0
#include "host/graph/rewriter.h"

#include <gmock/gmock.h>

namespace fusebox {
namespace {

using ::testing::ElementsAre;

Type F32(std::vector<int64_t> dims) { return {DType::kF32, Shape(dims)}; }

// x -> ABS a -> NEG n -> output, and RELU r of a that nobody reads.
struct Graph {
  Function f{"main"};
  ValueId x = f.AddInput(F32({2}));
  ValueId a = f.AddNode(Op::kAbs, {x}, {F32({2})}).results[0];
  ValueId n = f.AddNode(Op::kNeg, {a}, {F32({2})}).results[0];
  ValueId r = f.AddNode(Op::kRelu, {a}, {F32({2})}).results[0];
  Graph() { f.outputs = {n}; }

  std::vector<Op> Ops() const {
    std::vector<Op> ops;
    for (const auto& node : f.nodes) ops.push_back(node->op);
    return ops;
  }
};

// Elementwise: the type of the first operand.
void InferFirst(Function& f, Node& node) { f.value(node.results[0]).type = f.value(node.operands[0]).type; }

TEST(Rewriter, AppendsAtTheEndAtOnce) {
  Graph g;
  Rewriter r(g.f, InferFirst);
  r.SetLocation({"model/tanh", "tanh"});
  const ValueId v = r.Value(Op::kTanh, {g.n});
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kNeg, Op::kRelu, Op::kTanh));
  EXPECT_EQ(g.f.value(v).name, "model/tanh");
  EXPECT_EQ(g.f.value(v).type, F32({2}));
  EXPECT_EQ(g.f.nodes.back()->location, (Location{"model/tanh", "tanh"}));
}

TEST(Rewriter, InsertsInOrderWhenItFinishes) {
  Graph g;
  {
    Rewriter r(g.f);
    r.InsertBefore(2);
    const ValueId late = r.Typed(Op::kSin, {g.a}, F32({2}));
    r.InsertBefore(1);
    r.Typed(Op::kCos, {g.a}, F32({2}));
    r.Typed(Op::kExp, {g.a}, F32({2}));
    r.InsertBefore(2);
    r.Typed(Op::kSqrt, {late}, F32({2}));
    EXPECT_EQ(g.f.nodes.size(), 3u);
  }
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kCos, Op::kExp, Op::kNeg, Op::kSin, Op::kSqrt, Op::kRelu));
}

TEST(Rewriter, KeepsUsesWhileItEdits) {
  Graph g;
  Rewriter r(g.f);
  Node& neg = *r.producer(g.n);
  EXPECT_EQ(r.producer(g.n, Op::kAbs), nullptr);
  EXPECT_EQ(r.readers(g.a).size(), 2u);
  EXPECT_TRUE(r.is_output(g.n));
  EXPECT_TRUE(r.read_once(g.n));
  r.InsertBefore(1);
  const ValueId s = r.Typed(Op::kSin, {g.x}, F32({2}));
  EXPECT_EQ(r.producer(s)->op, Op::kSin);
  EXPECT_EQ(r.reads(g.x), 2u);
  r.SetOperand(neg, 0, s);
  EXPECT_THAT(r.readers(s), ElementsAre(&neg));
  EXPECT_EQ(r.reads(g.a), 1u);
  r.Replace(neg, s);
  EXPECT_THAT(g.f.outputs, ElementsAre(s));
  EXPECT_TRUE(r.is_output(s));
  EXPECT_EQ(r.producer(g.n), nullptr);
  r.Finish();
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kSin, Op::kRelu));
}

TEST(Rewriter, RemovesPureNodesAndConstantsThatLoseTheirLastReader) {
  Graph g;
  const ValueId c = g.f.AddConst(DType::kF32, Shape{1}, std::vector{1.0f});
  const ValueId sum = g.f.AddNode(Op::kAdd, {g.r, c}, {F32({2})}).results[0];
  g.f.outputs.push_back(sum);
  Rewriter r(g.f);
  r.Replace(*r.producer(sum), g.x);
  EXPECT_FALSE(g.f.value(c).is_const());
  r.Finish();
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kNeg));
  EXPECT_THAT(g.f.outputs, ElementsAre(g.n, g.x));
}

TEST(Rewriter, WalksOverTheNodesThatWereThere) {
  Graph g;
  Rewriter r(g.f, InferFirst);
  std::vector<Op> seen;
  const Status done = r.Walk([&](Node& node) -> Status {
    seen.push_back(node.op);
    if (node.is(Op::kNeg)) {
      r.Forward(node.results[0], r.Value(Op::kSin, {node.operands[0]}));
      r.Drop(node);
    }
    return {};
  });
  EXPECT_TRUE(done);
  EXPECT_THAT(seen, ElementsAre(Op::kAbs, Op::kNeg, Op::kRelu));
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kSin, Op::kRelu));
  EXPECT_EQ(g.f.outputs[0], g.f.nodes[1]->results[0]);
}

TEST(Rewriter, ForwardsToLaterNodesWithAndWithoutUses) {
  for (const bool uses : {false, true}) {
    Graph g;
    Rewriter r(g.f, InferFirst);
    ValueId sin = kNoValue;
    ASSERT_TRUE(r.Walk([&](Node& node) -> Status {
      if (node.is(Op::kAbs)) {
        sin = r.Value(Op::kSin, {g.x});
        r.Forward(g.a, sin);
        r.Drop(node);
        if (uses) {
          EXPECT_EQ(r.reads(sin), 2u);
        }
      } else {
        EXPECT_THAT(node.operands, ElementsAre(sin));
      }
      return {};
    }));
    EXPECT_THAT(g.Ops(), ElementsAre(Op::kSin, Op::kNeg, Op::kRelu));
  }
}

TEST(Rewriter, StopsAtAFailureAndKeepsTheGraphWhole) {
  Graph g;
  Rewriter r(g.f, InferFirst);
  const Status done = r.Walk([&](Node& node) -> Status {
    if (!node.is(Op::kAbs)) return Unsupported("no");
    r.Forward(g.a, r.Value(Op::kSin, {g.x}));
    r.Drop(node);
    return {};
  });
  EXPECT_FALSE(done);
  EXPECT_THAT(g.Ops(), ElementsAre(Op::kSin, Op::kNeg, Op::kRelu));
  for (const size_t i : {1, 2}) EXPECT_EQ(g.f.nodes[i]->operands[0], g.f.nodes[0]->results[0]);
}

TEST(Rewriter, TakesTrialsBack) {
  for (const bool uses : {false, true}) {
    Graph g;
    Rewriter r(g.f);
    if (uses) {
      EXPECT_EQ(r.reads(g.x), 1u);
    }
    r.InsertBefore(1);
    r.Typed(Op::kSin, {g.x}, F32({2}));
    const size_t mark = r.mark();
    const ValueId cos = r.Typed(Op::kCos, {g.x}, F32({2}));
    EXPECT_EQ(r.EmittedSince(mark).size(), 1u);
    r.Rollback(mark);
    EXPECT_EQ(r.reads(g.x), 2u);
    EXPECT_EQ(r.producer(cos), nullptr);
    r.Finish();
    EXPECT_THAT(g.Ops(), ElementsAre(Op::kAbs, Op::kSin, Op::kNeg, Op::kRelu));
  }
}

TEST(Rewriter, MakesConstantsAndCommonNodes) {
  Function f("main");
  Rewriter r(f);
  const ValueId list = r.I32({3, -1});
  EXPECT_THAT(*ConstInts(f, list), ElementsAre(3, -1));
  EXPECT_EQ(r.type(list), (Type{DType::kI32, Shape{2}}));
  EXPECT_EQ(r.shape(r.I32(std::vector<int32_t>{})), Shape{0});
  EXPECT_EQ(r.shape(r.I32Scalar(7)), Shape::Scalar());
  EXPECT_EQ(ConstScalar(f, r.Scalar(DType::kF64, 0.1)), 0.1);
  EXPECT_EQ(r.type(r.Scalar(DType::kF16, 2)), (Type{DType::kF16, Shape::Scalar()}));
  EXPECT_TRUE(f.nodes.back()->is(Op::kCast));
  const ValueId wide = f.AddConst(DType::kI64, Shape{2}, std::vector<int64_t>{1, int64_t{1} << 40});
  EXPECT_THAT(*ConstInts(f, r.ToI32(wide)), ElementsAre(1, INT32_MAX));
  EXPECT_EQ(r.Cast(wide, DType::kI64), wide);
}

TEST(Constants, ReadsOneKindOnly) {
  Function f("main");
  const ValueId none = f.AddInput({DType::kI32, Shape{1}});
  const ValueId ints = f.AddConst(DType::kI64, Shape{2}, std::vector<int64_t>{4, 5});
  const ValueId floats = f.AddConst(DType::kF32, Shape{1, 1}, std::vector{0.5f});
  EXPECT_THAT(*ConstInts(f, ints), ElementsAre(4, 5));
  EXPECT_EQ(ConstInt(f, ints), std::nullopt);
  EXPECT_EQ(ConstInts(f, floats), std::nullopt);
  EXPECT_EQ(ConstInts(f, none), std::nullopt);
  EXPECT_EQ(ConstInts(f, kNoValue), std::nullopt);
  EXPECT_THAT(*ConstFloats(f, floats), ElementsAre(0.5));
  EXPECT_EQ(ConstScalar(f, floats), 0.5);
  EXPECT_EQ(ConstScalar(f, ints), std::nullopt);
}

}  // namespace
}  // namespace fusebox
