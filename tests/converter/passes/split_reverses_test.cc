// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

using ::testing::ElementsAre;

TEST(SplitReverses, WritesOneNodePerAxis) {
  for (const bool bytes : {false, true}) {
    Rewritten m;
    const Type type{bytes ? DType::kI8 : DType::kF32, {2, 1, 2}};
    const ValueId x = m.f.AddInput(type);
    Node& reverse = m.f.AddNode(Op::kReverseV2, {x, m.Ints({0, -1})}, {type});
    m.f.outputs = reverse.results;
    const auto quant = std::make_shared<const Quant>(
        Quant{.scales = std::vector{0.5F}, .zero_points = std::vector<int64_t>{3}});
    if (bytes) m.f.value(x).quant = m.f.value(m.f.outputs[0]).quant = quant;
    ASSERT_EQ(m.Run(SplitReverses), "");
    ASSERT_EQ(m.f.nodes.size(), 2u);
    for (const auto& node : m.f.nodes) {
      EXPECT_EQ(m.f.value(node->operands[1]).type.shape.element_count(), 1);
      EXPECT_EQ(m.f.value(node->results[0]).quant != nullptr, bytes);
    }
    if (bytes) continue;
    const auto out = m.Compute("main", {Floats({2, 1, 2}, {1, 2, 3, 4})});
    EXPECT_THAT(FloatsOf(out[0]), ElementsAre(4, 3, 2, 1));
  }
}

TEST(SplitReverses, LeavesOneAxisAndComputedOnes) {
  Rewritten m;
  const ValueId x = m.In({2, 2}), axes = m.f.AddInput(I32({2}));
  const ValueId once = m.f.AddNode(Op::kReverseV2, {x, m.Ints({0})}, {F32({2, 2})}).results[0];
  m.f.outputs = m.f.AddNode(Op::kReverseV2, {once, axes}, {F32({2, 2})}).results;
  ASSERT_EQ(m.Run(SplitReverses), "");
  EXPECT_EQ(m.f.nodes.size(), 2u);
}

}  // namespace
}  // namespace fusebox::converter
