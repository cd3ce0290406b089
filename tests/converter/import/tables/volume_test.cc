// SPDX-License-Identifier: Apache-2.0
// Pooling over volumes whose depth is known at run time only, as videos have it.
#include <algorithm>

#include "tests/converter/passes/bench.h"

namespace fusebox::converter {
namespace {

constexpr int64_t kHeight = 4, kWidth = 2;

// The largest value of each box of 2x2x2.
std::vector<float> Largest(const std::vector<float>& x, int64_t batch, int64_t depth) {
  std::vector<float> out;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t d = 0; d + 1 < depth; d += 2)
      for (int64_t h = 0; h < kHeight; h += 2) {
        float most = -1e9F;
        for (int64_t i = 0; i < 8; ++i) {
          const int64_t row = ((b * depth + d + i / 4) * kHeight + h + i / 2 % 2) * kWidth;
          most = std::max(most, x[static_cast<size_t>(row + i % 2)]);
        }
        out.push_back(most);
      }
  return out;
}

TEST(Volumes, ArePooledAtAnyDepth) {
  Bench bench;
  Function& f = bench.Add("main");
  const std::vector<int64_t> window = {1, 2, 2, 2, 1};
  Attrs attrs;
  attrs.Set("ksize", window);
  attrs.Set("strides", window);
  attrs.Set("padding", std::string("VALID"));
  const ValueId x = f.AddInput(F32({-1, -1, kHeight, kWidth, 1}));
  Node& pool = f.AddNode(Op::kOpaque, {x}, {Type{DType::kF32, Shape()}}, attrs);
  pool.name = "MaxPool3D";
  f.outputs = pool.results;
  bench.Sign(f);
  ASSERT_EQ(bench.Run(FoldToFixpoint), "");
  EXPECT_EQ(f.value(f.outputs[0]).type.shape, (Shape{-1, -1, 2, 1, 1})) << ToText(f);
  for (const int64_t depth : {2, 3, 6}) {
    std::vector<float> values(static_cast<size_t>(2 * depth * kHeight * kWidth));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101);
    const auto out = bench.Compute("main", {Floats({2, depth, kHeight, kWidth, 1}, values)});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].type.shape, (Shape{2, depth / 2, 2, 1, 1}));
    EXPECT_EQ(FloatsOf(out[0]), Largest(values, 2, depth));
  }
}

}  // namespace
}  // namespace fusebox::converter
