// SPDX-License-Identifier: Apache-2.0
#include "host/verify/rounding.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fusebox::verify {
namespace {

Type Floats(std::vector<int64_t> dims) { return {DType::kF32, Shape(std::move(dims))}; }

TEST(Roundings, AreThoseOfTheLongestWay) {
  Module module;
  Function& f = module.Add("f");
  const ValueId x = f.AddInput(Floats({2, 5})), w = f.AddInput(Floats({7, 5}));
  const ValueId product = f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {Floats({2, 7})}).results[0];
  const ValueId bent = f.AddNode(Op::kTanh, {product}, {Floats({2, 7})}).results[0];
  f.AddNode(Op::kNeg, {bent}, {Floats({2, 7})});  // leads nowhere
  f.outputs = {product};
  EXPECT_EQ(Roundings(module, f), 5);
  f.outputs = {product, bent};
  EXPECT_EQ(Roundings(module, f), 6);
  const ValueId axis = f.AddConst<int32_t>(DType::kI32, {1}, {1});
  f.outputs = f.AddNode(Op::kMean, {bent, axis}, {Floats({2})}).results;
  EXPECT_EQ(Roundings(module, f), 6 + 7);
}

TEST(Roundings, OfALoopAreThoseOfOneStep) {
  Module module;
  Function& f = module.Add("f");
  Function& step = module.Add("step");
  const ValueId x = f.AddInput(Floats({2, 5})), y = step.AddInput(Floats({2, 5}));
  const ValueId twice = step.AddNode(Op::kAdd, {y, y}, {Floats({2, 5})}).results[0];
  step.outputs = step.AddNode(Op::kTanh, {twice}, {Floats({2, 5})}).results;
  Function& cond = module.Add("cond");
  cond.AddInput(Floats({2, 5}));
  cond.outputs = {cond.AddConst<uint8_t>(DType::kBool, Shape::Scalar(), {0})};
  Attrs attrs;
  attrs.Set("cond_subgraph_index", FunctionRef{"cond"});
  attrs.Set("body_subgraph_index", FunctionRef{"step"});
  f.outputs = f.AddNode(Op::kWhile, {x}, {Floats({2, 5})}, attrs).results;
  EXPECT_EQ(Roundings(module, f), 1 + 2);
}

TEST(Rounding, AddsUpAndStaysBelowOne) {
  EXPECT_DOUBLE_EQ(RelativeError(1), 0x1p-24 / (1 - 0x1p-24));
  EXPECT_GT(RelativeError(100), 100 * 0x1p-24);
  EXPECT_EQ(RelativeError(int64_t{1} << 40), 1);
}

TEST(Rounding, MovesEveryElementBothWaysButWhatIsExact) {
  const std::vector<float> values = {0.5f, -3, 1e30f, 0, -0.0f, 1, -1, INFINITY};
  const Tensor t{Floats({8}), Buffer::Of<float>(values)};
  bool up = false, down = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Tensor off = Nudged(t, 1e-3, seed);
    const auto is = off.data.As<float>();
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(std::abs(is[i] / values[i] - 1), 1e-3f, 1e-6f);
      (is[i] / values[i] > 1 ? up : down) = true;
    }
    for (size_t i = 3; i < values.size(); ++i) EXPECT_EQ(is[i], values[i]);
  }
  EXPECT_TRUE(up && down);
  const Tensor whole{{DType::kI32, {1}}, Buffer::Of<int32_t>(std::vector<int32_t>{7})};
  EXPECT_EQ(Nudged(whole, 0.5, 1), whole);
}

}  // namespace
}  // namespace fusebox::verify
