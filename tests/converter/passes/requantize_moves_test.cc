// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Quant> ScaleOf(float scale, int64_t zero_point) {
  return std::make_shared<const Quant>(
      Quant{.scales = std::vector{scale}, .zero_points = std::vector{zero_point}});
}

TEST(RequantizeMoves, WritesQuantizeBehindEachOpThatOnlyMoves) {
  const Type row{DType::kI8, {1, 3}};
  const std::pair<Op, std::vector<std::vector<int32_t>>> ops[] = {{Op::kReverseV2, {{1}}},
                                                                  {Op::kTranspose, {{0, 1}}},
                                                                  {Op::kSlice, {{0, 0}, {1, 3}}},
                                                                  {Op::kTile, {{1, 1}}}};
  for (const auto& [op, lists] : ops) {
    Rewritten m;
    std::vector<ValueId> operands = {m.f.AddInput(row)};
    for (const auto& list : lists) operands.push_back(m.Ints(list));
    m.f.outputs = m.f.AddNode(op, operands, {row}).results;
    m.f.value(m.f.inputs[0]).quant = ScaleOf(0.5F, 1);
    m.f.value(m.f.outputs[0]).quant = ScaleOf(0.25F, -1);
    ASSERT_EQ(m.Run(RequantizeMoves), "") << Name(op);
    ASSERT_EQ(m.f.nodes.size(), 2u) << Name(op);
    EXPECT_TRUE(m.f.nodes[0]->is(op) && m.f.nodes[1]->is(Op::kQuantize)) << ToText(m.f);
    // Reals 1, 0, -0.5: (q + 1) / 4.
    const auto out = m.Compute("main", {Tensor{row, Buffer::Of<int8_t>(std::vector<int8_t>{3, 1, 0})}});
    const auto bytes = out[0].data.As<int8_t>();
    const std::vector<int8_t> values(bytes.begin(), bytes.end());
    if (op == Op::kReverseV2) EXPECT_THAT(values, ElementsAre(-3, -1, 3));
    else EXPECT_THAT(values, ElementsAre(3, -1, -3)) << Name(op);
  }
}

// As in TensorFlow Lite, its bytes get another meaning.
TEST(RequantizeMoves, LeavesReshape) {
  Rewritten m;
  const Type row{DType::kI8, {1, 3}};
  m.f.outputs = m.f.AddNode(Op::kReshape, {m.f.AddInput(row), m.Ints({1, 3})}, {row}).results;
  m.f.value(m.f.inputs[0]).quant = ScaleOf(0.5F, 1);
  m.f.value(m.f.outputs[0]).quant = ScaleOf(0.25F, -1);
  ASSERT_EQ(m.Run(RequantizeMoves), "");
  EXPECT_EQ(m.f.nodes.size(), 1u);
}

TEST(RequantizeMoves, LeavesOneScaleAndFloats) {
  for (const bool bytes : {false, true}) {
    Rewritten m;
    const Type type{bytes ? DType::kI8 : DType::kF32, {2}};
    const ValueId x = m.f.AddInput(type);
    m.f.outputs = m.f.AddNode(Op::kReverseV2, {x, m.Ints({0})}, {type}).results;
    if (bytes) m.f.value(x).quant = m.f.value(m.f.outputs[0]).quant = ScaleOf(0.5F, 1);
    ASSERT_EQ(m.Run(RequantizeMoves), "");
    EXPECT_EQ(m.f.nodes.size(), 1u);
  }
}

}  // namespace
}  // namespace fusebox::converter
