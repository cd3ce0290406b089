// SPDX-License-Identifier: Apache-2.0
// Recurrent layers written out step by step: what makes them one layer, and what does not.
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

// tanh(x W + h R) for each of three parts of x [3,1,2], from zeros that are folded in the first.
struct UnrolledLayer : Rewritten {
  ValueId w = Weights({2, 2}), r = Weights({2, 2});
  std::vector<ValueId> parts;

  UnrolledLayer() {
    Attrs attrs = With({{"axis", int64_t{0}}, {"num", int64_t{3}}});
    const std::vector<Type> types(3, F32({1, 2}));
    const Node& unpack = f.AddNode(Op::kUnpack, {In({3, 1, 2})}, types, attrs);
    parts.assign(unpack.results.begin(), unpack.results.end());
  }
  ValueId Dense(ValueId x, ValueId weights) { return Op1(Op::kFullyConnected, {x, weights, kNoValue}); }
  ValueId Step(size_t t, ValueId h, ValueId weights) {
    return Op1(Op::kTanh, {Op1(Op::kAdd, {Dense(parts[t], w), Dense(h, weights)})});
  }
  ValueId First() { return Op1(Op::kTanh, {Dense(parts[0], w)}); }
  size_t Layers(ValueId out) {
    f.outputs = {out};
    Sign(f);
    EXPECT_EQ(Run(RecognizeComposites), "");
    return Count(f, Op::kStablehloComposite);
  }
};

TEST(UnrolledRnn, TakesStepsOfEqualWeights) {
  UnrolledLayer m;
  EXPECT_EQ(m.Layers(m.Step(2, m.Step(1, m.First(), m.r), m.r)), 1u) << ToText(m.f);
}

// The first step does not show its recurrent weights: those of the others are held against each other.
TEST(UnrolledRnn, LeavesStepsOfOtherRecurrentWeights) {
  UnrolledLayer m;
  EXPECT_EQ(m.Layers(m.Step(2, m.Step(1, m.First(), m.r), m.Weights({2, 2}))), 0u) << ToText(m.f);
}

// A column of a product, added to every unit, is no bias and no block of weights as wide as the layer.
TEST(UnrolledRnn, LeavesAColumnThatIsAddedToAllUnits) {
  UnrolledLayer m;
  const ValueId wide = m.Weights({4, 2});
  const auto step = [&](size_t t, ValueId h) {
    const ValueId column = m.Op1(Op::kSlice, {m.Dense(m.parts[t], wide), m.Ints({0, 0}), m.Ints({-1, 1})});
    return m.Op1(Op::kTanh, {m.Op1(Op::kAdd, {m.Dense(h, m.r), column})});
  };
  const ValueId h = m.In({1, 2});
  EXPECT_EQ(m.Layers(step(2, step(1, step(0, h)))), 0u) << ToText(m.f);
}

}  // namespace
}  // namespace fusebox::converter
