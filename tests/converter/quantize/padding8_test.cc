// SPDX-License-Identifier: Apache-2.0
// Padding with a number far below all values, which a max passes over, in 8 and 16 bits.
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Quantization kBoth[] = {Quantization::kInt8, Quantization::kInt16x8};

struct Pooled : Eight {
  ValueId Conv(ValueId x, int64_t channels) {
    std::vector<float> weights(static_cast<size_t>(channels * 9 * f.value(x).type.shape.dims().back()));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(1.7f * static_cast<float>(i));
    return Op1(Op::kConv2D,
               {x, C({channels, 3, 3, f.value(x).type.shape.dims().back()}, weights),
                C({channels}, std::vector<float>(size_t(channels)))},
               Window());
  }
  ValueId Padded(ValueId x, float value) {
    return Op1(Op::kPadV2, {x, Pairs({0, 0, 1, 1, 1, 1, 0, 0}), C(value)});
  }
  ValueId Max(ValueId x, int64_t size = 3) {
    Attrs window = Window(size == 1 ? 1 : 2, "VALID");
    window.Set("filter_height", size);
    window.Set("filter_width", size);
    return Op1(Op::kMaxPool2D, {x}, window);
  }
  ValueId Classes(ValueId x) { return Softmax(Conv(x, 4)); }
  double Step(Op op) const {
    for (const auto& node : f.nodes)
      if (node->is(op)) return f.value(node->results[0]).quant ? QuantOf(node->results[0]).scales[0] : 0;
    return -1;
  }
};

TEST(Padding8, OfAMaxHasNoPartInTheRange) {
  for (const Quantization as : kBoth) {
    for (const float far : {-3.4028235e38f, -1e9f, -65504.0f, -1e4f}) {
      Pooled m;
      ASSERT_EQ(m.Quantize({m.Classes(m.Max(m.Padded(m.Conv(m.In({1, 8, 8, 3}), 4), far)))}, as), "");
      EXPECT_GT(m.Snr(), 24) << far << ": " << m.Ops();
      EXPECT_EQ(m.Ops(), "QUANTIZE CONV_2D PADV2 MAX_POOL_2D CONV_2D SOFTMAX DEQUANTIZE") << far;
      EXPECT_EQ(m.Notes(), "") << far;
    }
  }
}

TEST(Padding8, MayBeMovedBeforeTheMax) {
  Pooled m;
  const ValueId padded = m.Padded(m.Conv(m.In({1, 8, 8, 3}), 4), -65504);
  const ValueId turned = m.Op1(Op::kTranspose, {padded, m.Ints({0, 2, 1, 3})});
  ASSERT_EQ(m.Quantize({m.Classes(m.Max(turned))}), "");
  EXPECT_GT(m.Snr(), 24) << m.Ops();
  EXPECT_EQ(m.Ops(), "QUANTIZE CONV_2D PADV2 TRANSPOSE MAX_POOL_2D CONV_2D SOFTMAX DEQUANTIZE");
}

TEST(Padding8, MayBeSelected) {
  Pooled m;
  const ValueId x = m.Conv(m.In({1, 8, 8, 3}), 4);
  std::vector<float> mask(8);
  mask[0] = 1;
  const ValueId on = m.Op1(Op::kGreater, {m.C({1, 1, 8, 1}, mask), m.C(0.5f)});
  ASSERT_EQ(m.Quantize({m.Classes(m.Max(m.Op1(Op::kSelectV2, {on, m.C(-65504), x})))}), "");
  EXPECT_GT(m.Snr(), 24) << m.Ops();
}

// Moderate padding is a value as any other.
TEST(Padding8, NearTheValuesCounts) {
  for (const Quantization as : kBoth) {
    Pooled m;
    ASSERT_EQ(m.Quantize({m.Classes(m.Padded(m.Conv(m.In({1, 8, 8, 3}), 4), -8))}, as), "");
    EXPECT_GT(m.Snr(), 24) << m.Ops();
    EXPECT_EQ(m.Ops(), "QUANTIZE CONV_2D PADV2 CONV_2D SOFTMAX DEQUANTIZE");
  }
}

// A window of padding only returns it, and a sum has a use for it.
TEST(Padding8, ThatIsReadStays) {
  Pooled m;
  const ValueId x = m.Conv(m.In({1, 8, 8, 3}), 4);
  const ValueId padded = m.Padded(x, -65504);
  const ValueId sum = m.Op1(Op::kAdd, {x, m.Conv(x, 4)});
  ASSERT_EQ(m.Quantize({m.Max(padded, 1), m.Classes(sum)}), "");
  EXPECT_GT(m.Snr(1), 18) << m.Ops();
  EXPECT_LT(m.Step(Op::kConv2D), 0.5);
  EXPECT_LT(m.Step(Op::kAdd), 0.5);
  EXPECT_GT(m.Step(Op::kAdd), 0) << m.Notes();
  EXPECT_THAT(m.Notes(),
              HasSubstr("PADV2: stays f32: its padding is far outside of the range of its operand"));
}

// One step of the result is more than most of its values.
TEST(Padding8, ThatErasesValuesIsSpokenOf) {
  for (const Quantization as : kBoth) {
    Pooled m;
    ASSERT_EQ(m.Quantize({m.Conv(m.Padded(m.Conv(m.In({1, 8, 8, 3}), 4), -3e5f), 4)}, as), "");
    EXPECT_THAT(m.Notes(), HasSubstr("PADV2: "));
    EXPECT_THAT(m.Notes(), HasSubstr("% of its values other than zero become zero: one step is "));
  }
  Pooled m;
  ASSERT_EQ(m.Quantize({m.Classes(m.Max(m.Conv(m.In({1, 8, 8, 3}), 4)))}), "");
  EXPECT_THAT(m.Notes(), Not(HasSubstr("become zero")));
}

}  // namespace
}  // namespace fusebox::converter
