// SPDX-License-Identifier: Apache-2.0
// Sizes that are computed in 64 bits and read in 32.
#include <gmock/gmock.h>

#include "tests/converter/passes/rewritten.h"

namespace fusebox::converter {
namespace {

struct Sizes : Rewritten {
  ValueId x = In({-1, 3});
  ValueId Wide(const std::vector<int64_t>& values) {
    return f.AddConst<int64_t>(DType::kI64, {static_cast<int64_t>(values.size())}, values);
  }
  ValueId Shape64() { return Op1(Op::kShape, {x}, With({{"out_type", DType::kI64}})); }
  ValueId Cut(ValueId v) {
    return Op1(Op::kCast, {v}, With({{"in_data_type", DType::kI64}, {"out_data_type", DType::kI32}}));
  }
  ValueId First(ValueId v) { return Op1(Op::kStridedSlice, {v, Ints({0}), Ints({1}), Ints({1})}); }
  size_t WideValues() const {
    size_t count = 0;
    for (const auto& node : f.nodes)
      for (const ValueId v : node->results) count += f.value(v).type.dtype == DType::kI64;
    return count;
  }
};

TEST(Narrow, ComputesSizesIn32Bits) {
  Sizes m;
  const ValueId rows = m.First(m.Shape64());
  const ValueId both =
      m.Op1(Op::kConcatenation, {m.Op1(Op::kMul, {rows, m.Wide({3})}), m.Op1(Op::kSub, {rows, m.Wide({-2})})},
            m.With({{"axis", int64_t{0}}}));
  m.Finish({m.Op1(Op::kFill, {m.Cut(both), m.C(0.5f)})});
  EXPECT_EQ(m.Ops(), "SHAPE STRIDED_SLICE MUL SUB CONCATENATION FILL");
  EXPECT_EQ(m.WideValues(), 0u);
}

TEST(Narrow, DropsACutOfWhatWasWidened) {
  Sizes m;
  const ValueId sizes = m.Op1(Op::kShape, {m.x}, m.With({{"out_type", DType::kI32}}));
  const ValueId wide =
      m.Op1(Op::kCast, {sizes}, m.With({{"in_data_type", DType::kI32}, {"out_data_type", DType::kI64}}));
  m.Finish({m.Op1(Op::kFill, {m.Cut(wide), m.C(0.5f)})});
  EXPECT_EQ(m.Ops(), "SHAPE FILL");
}

TEST(Narrow, LeavesWhatIsHandedOutOrDependsOnTheUpperHalf) {
  Sizes shown, divided;
  const ValueId sizes = shown.Shape64();
  shown.f.outputs = {sizes, shown.Op1(Op::kFill, {shown.Cut(sizes), shown.C(0.5f)})};
  shown.Sign(shown.f);
  ASSERT_EQ(shown.Run(Optimize), "");
  EXPECT_EQ(shown.f.value(shown.f.outputs[0]).type.dtype, DType::kI64);
  const ValueId half = divided.Op1(Op::kFloorDiv, {divided.Shape64(), divided.Wide({2})});
  divided.Finish({divided.Op1(Op::kFill, {divided.Cut(half), divided.C(0.5f)})});
  EXPECT_EQ(divided.Ops(), "SHAPE FLOOR_DIV CAST FILL");
}

// Each sum names the one before twice: asked without memory, thirty of them are 2^30 questions.
TEST(Narrow, AsksOnceForWhatIsReadTwice) {
  Sizes m;
  ValueId sum = m.First(m.Shape64());
  for (int i = 0; i < 30; ++i) sum = m.Op1(Op::kMul, {sum, sum});
  m.Finish({m.Op1(Op::kFill, {m.Cut(m.Op1(Op::kMul, {sum, m.Wide({0})})), m.C(0.5f)})});
  EXPECT_EQ(m.WideValues(), 0u);
}

}  // namespace
}  // namespace fusebox::converter
