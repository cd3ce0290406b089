// SPDX-License-Identifier: Apache-2.0
// Activations and normalizations that are written out.
#include <gmock/gmock.h>

#include <numbers>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

struct Written : Rewritten {
  ValueId x = In({2, 5});
  ValueId Times(ValueId a, ValueId b) { return Op1(Op::kMul, {a, b}); }
  ValueId Plus(ValueId a, ValueId b) { return Op1(Op::kAdd, {a, b}); }
  // As TensorFlow's op is imported.
  ValueId Erf(ValueId v) {
    const ValueId y = Opaque(f, "Erf", {v}, f.value(v).type);
    EXPECT_EQ(Run(TranslateOps), "");
    for (const auto& node : f.nodes) EXPECT_FALSE(node->is(Op::kOpaque));
    return f.nodes.back()->results[0] == y ? y : f.nodes.back()->results[0];
  }
  ValueId Cube(ValueId v) { return Op1(Op::kPow, {v, C(3)}); }
  ValueId Tanh(ValueId inner) { return Plus(Op1(Op::kTanh, {Times(inner, C(0.7978845608f))}), C(1)); }
};

TEST(Patterns, FindsGeluByErf) {
  const float root = std::numbers::sqrt2_v<float>;
  Written divided;
  const ValueId z = divided.Op1(Op::kDiv, {divided.x, divided.C(root)});
  divided.Finish(
      {divided.Times(divided.Times(divided.C(0.5f), divided.x), divided.Plus(divided.C(1), divided.Erf(z)))},
      1e-6);
  EXPECT_EQ(divided.Ops(), "GELU");
  EXPECT_FALSE(divided.f.nodes[0]->attrs.b("approximate", false));
  Written halved;
  const ValueId w = halved.Times(halved.x, halved.C(1 / root));
  halved.Finish(
      {halved.Op1(Op::kDiv, {halved.Times(halved.x, halved.Plus(halved.Erf(w), halved.C(1))), halved.C(2)})},
      1e-6);
  EXPECT_EQ(halved.Ops(), "GELU");
  Written complement;  // erfc(-x / sqrt 2)
  const ValueId n = complement.Times(complement.x, complement.C(-1 / root));
  const ValueId erfc = complement.Op1(Op::kSub, {complement.C(1), complement.Erf(n)});
  complement.Finish({complement.Times(complement.C(0.5f), complement.Times(complement.x, erfc))}, 1e-6);
  EXPECT_EQ(complement.Ops(), "GELU");
}

TEST(Patterns, FindsGeluByTanh) {
  Written cube;
  const ValueId inner = cube.Plus(cube.x, cube.Times(cube.C(0.044715f), cube.Cube(cube.x)));
  cube.Finish({cube.Times(cube.Times(cube.C(0.5f), cube.x), cube.Tanh(inner))});
  EXPECT_EQ(cube.Ops(), "GELU");
  EXPECT_TRUE(cube.f.nodes[0]->attrs.b("approximate", false));
  Written square;
  const ValueId bent =
      square.Plus(square.Times(square.Op1(Op::kSquare, {square.x}), square.C(0.044715f)), square.C(1));
  square.Finish(
      {square.Times(square.Times(square.x, square.Tanh(square.Times(square.x, bent))), square.C(0.5f))});
  EXPECT_EQ(square.Ops(), "GELU");
}

TEST(Patterns, LeavesWhatIsNearlyGelu) {
  Written other;  // another coefficient
  const ValueId inner = other.Plus(other.x, other.Times(other.C(0.05f), other.Cube(other.x)));
  other.Finish({other.Times(other.Times(other.C(0.5f), other.x), other.Tanh(inner))});
  EXPECT_EQ(Count(other.f, Op::kGelu), 0u);
  Written two;  // another operand outside than inside
  const ValueId z = two.In({2, 5});
  const ValueId cube = two.Plus(two.x, two.Times(two.C(0.044715f), two.Cube(two.x)));
  two.Finish({two.Times(two.Times(two.C(0.5f), z), two.Tanh(cube))});
  EXPECT_EQ(Count(two.f, Op::kGelu), 0u);
  Written erf;  // erf(x), not erf(x / sqrt 2)
  erf.Finish({erf.Times(erf.Times(erf.C(0.5f), erf.x), erf.Plus(erf.C(1), erf.Erf(erf.x)))});
  EXPECT_EQ(Count(erf.f, Op::kGelu), 0u);
}

TEST(Patterns, FindsHardSwish) {
  for (const bool divided : {false, true}) {
    Written m;
    const ValueId gate = m.Op1(Op::kRelu6, {m.Plus(m.x, m.C(3))});
    const ValueId y =
        divided ? m.Op1(Op::kDiv, {m.Times(m.x, gate), m.C(6)}) : m.Times(m.Times(gate, m.C(1.0f / 6)), m.x);
    m.Finish({y});
    EXPECT_EQ(m.Ops(), "HARD_SWISH");
  }
  Written other;
  other.Finish({other.Times(other.x, other.Op1(Op::kRelu6, {other.Plus(other.x, other.C(2))}))});
  EXPECT_EQ(Count(other.f, Op::kHardSwish), 0u);
}

ValueId Normalize(Written& m, int32_t axis, float least, bool keep = true) {
  const ValueId sum =
      m.Op1(Op::kSum, {m.Op1(Op::kSquare, {m.x}), m.Ints({axis})}, m.With({{"keep_dims", keep}}));
  return m.Times(m.x, m.Op1(Op::kRsqrt, {m.Op1(Op::kMaximum, {sum, m.C(least)})}));
}

TEST(Patterns, FindsL2NormalizationOverTheLastDimension) {
  Written last, named, other_axis, other_bound;
  last.Finish({Normalize(last, -1, 1e-12f)});
  EXPECT_EQ(last.Ops(), "L2_NORMALIZATION");
  named.Finish({Normalize(named, 1, 1e-12f)});
  EXPECT_EQ(named.Ops(), "L2_NORMALIZATION");
  other_axis.Finish({Normalize(other_axis, 0, 1e-12f)});
  EXPECT_EQ(Count(other_axis.f, Op::kL2Normalization), 0u);
  Written wider;
  const ValueId sum = wider.Op1(Op::kSum, {wider.Op1(Op::kSquare, {wider.x}), wider.Ints({-1})},
                                wider.With({{"keep_dims", true}}));
  const ValueId bounded = wider.Op1(Op::kMaximum, {sum, wider.C({1, 1, 1, 1}, {1e-12f})});
  wider.Finish({wider.Op1(Op::kMul, {wider.x, wider.Op1(Op::kRsqrt, {bounded})})});
  EXPECT_EQ(Count(wider.f, Op::kL2Normalization), 0u) << "the result has more dimensions";
  other_bound.Finish({Normalize(other_bound, -1, 1e-3f)});
  EXPECT_EQ(Count(other_bound.f, Op::kL2Normalization), 0u) << "the op's own bound is another";
}

TEST(Patterns, FindsPowersThatHaveAnOp) {
  const std::pair<float, const char*> powers[] = {
      {2, "SQUARE"}, {0.5f, "SQRT"}, {-0.5f, "RSQRT"}, {3, "POW"}, {-2, "POW"}};
  for (const auto& [exponent, op] : powers) {
    Written m;
    const ValueId positive = m.Op1(Op::kExp, {m.x});
    m.Finish({m.Op1(Op::kPow, {positive, m.C(exponent)})});
    EXPECT_EQ(m.Ops(), std::string("EXP ") + op);
  }
  Written wider;
  wider.Finish({wider.Op1(Op::kPow, {wider.Op1(Op::kExp, {wider.x}), wider.C({1, 1, 1, 1}, {2})})});
  EXPECT_EQ(wider.Ops(), "EXP POW") << "the result has more dimensions";
}

TEST(Patterns, FindsSquaredDifferences) {
  Written m, read, clipped;
  m.Finish({m.Op1(Op::kSquare, {m.Op1(Op::kSub, {m.x, m.C(0.25f)})})});
  EXPECT_EQ(m.Ops(), "SQUARED_DIFFERENCE");
  const ValueId difference = read.Op1(Op::kSub, {read.x, read.C(0.25f)});
  read.Finish({read.Op1(Op::kSquare, {difference}), difference});
  EXPECT_EQ(Count(read.f, Op::kSquare), 1u);
  const ValueId positive = clipped.Op1(Op::kSub, {clipped.x, clipped.C(0.25f)},
                                       clipped.With({{"fused_activation_function", std::string("RELU")}}));
  clipped.Finish({clipped.Op1(Op::kSquare, {positive})});
  EXPECT_EQ(clipped.Ops(), "SUB SQUARE");
}

ValueId Prelu(Written& m, ValueId x, ValueId alpha, Op op, ValueId z = kNoValue) {
  const ValueId below = m.Op1(Op::kRelu, {m.Op1(Op::kNeg, {z == kNoValue ? x : z})});
  return m.Op1(op, {m.Op1(Op::kRelu, {x}), m.Times(alpha, below)});
}

TEST(Patterns, FindsPrelu) {
  for (const Op op : {Op::kAdd, Op::kSub}) {
    Written m;
    m.Finish({Prelu(m, m.x, m.Weights({5}), op)});
    EXPECT_EQ(m.Ops(), "PRELU");
  }
  Written batch;
  batch.Finish({Prelu(batch, batch.x, batch.Weights({1, 5}), Op::kSub)});
  EXPECT_EQ(batch.Ops(), "PRELU");
  Written leaky;
  leaky.Finish({Prelu(leaky, leaky.x, leaky.C(0.3f), Op::kSub)});
  EXPECT_EQ(leaky.Ops(), "LEAKY_RELU");
  Written rows, two;
  rows.Finish({Prelu(rows, rows.x, rows.Weights({2, 1}), Op::kSub)});
  EXPECT_EQ(Count(rows.f, Op::kPrelu), 0u) << "one per element of the batch";
  two.Finish({Prelu(two, two.x, two.Weights({5}), Op::kSub, two.In({2, 5}))});
  EXPECT_EQ(Count(two.f, Op::kPrelu), 0u) << "of two operands";
}

TEST(Patterns, FindsLeakyReluInAMaximum) {
  Written m, steep;
  m.Finish({m.Op1(Op::kMaximum, {m.x, m.Times(m.x, m.C(0.2f))})});
  EXPECT_EQ(m.Ops(), "LEAKY_RELU");
  steep.Finish({steep.Op1(Op::kMaximum, {steep.x, steep.Times(steep.x, steep.C(2))})});
  EXPECT_EQ(steep.Ops(), "MUL MAXIMUM");
}

TEST(Patterns, TurnsClampsIntoActivations) {
  Written six, one, plain, other;
  six.Finish({six.Op1(Op::kMinimum, {six.Op1(Op::kMaximum, {six.x, six.C(0)}), six.C(6)})});
  EXPECT_EQ(six.Ops(), "RELU6");
  one.Finish({one.Op1(Op::kMaximum, {one.Op1(Op::kMinimum, {one.C(1), one.x}), one.C(-1)})});
  EXPECT_EQ(one.Ops(), "RELU_N1_TO_1");
  plain.Finish({plain.Op1(Op::kMaximum, {plain.x, plain.C(0)})});
  EXPECT_EQ(plain.Ops(), "RELU");
  other.Finish({other.Op1(Op::kMinimum, {other.Op1(Op::kMaximum, {other.x, other.C(-2)}), other.C(6)})});
  EXPECT_EQ(other.Ops(), "MAXIMUM MINIMUM");
  Written between;
  const ValueId low = between.Op1(Op::kMaximum, {between.x, between.C(-1)});
  between.Finish({between.Op1(Op::kMinimum, {low, between.C(1)}), low});
  EXPECT_EQ(between.Ops(), "MAXIMUM MINIMUM") << "what is read between the two stays";
}

}  // namespace
}  // namespace fusebox::converter
