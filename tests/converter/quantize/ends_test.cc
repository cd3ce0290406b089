// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs in 8 bits.
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

struct Ends : Eight {
  explicit Ends(DType input, DType output) {
    options.input_type = input;
    options.output_type = output;
  }
  // A sample in the steps of the input's type.
  Tensor Stored(const Tensor& sample) const {
    const Value& input = f.value(f.inputs[0]);
    const double scale = input.quant->scales[0], zero = static_cast<double>(input.quant->zero_points[0]);
    const bool flips = input.type.dtype == DType::kU8;
    std::vector<int8_t> bytes;
    for (const float value : FloatsOf(sample)) {
      const double steps = std::round(value / scale) + zero;
      bytes.push_back(static_cast<int8_t>(std::clamp(steps, flips ? 0.0 : -128.0, flips ? 255.0 : 127.0)));
    }
    return {input.type, Buffer::Of<int8_t>(bytes)};
  }
  // Returns the largest error of the 8-bit outputs against the outputs of the float model, in steps.
  double Steps() {
    const Quant& quant = QuantOf(f.outputs[0]);
    double worst = 0;
    for (unsigned s = 0; s < kTried; ++s) {
      const Tensor result = Compute("main", {Stored(Sample(1000 + s)[0])})[0];
      const auto expected = FloatsOf(before[s][0]);
      for (size_t i = 0; i < expected.size(); ++i) {
        const int step = result.type.dtype == DType::kU8 ? int{result.data.As<uint8_t>()[i]}
                                                         : int{result.data.As<int8_t>()[i]};
        const double value = static_cast<double>(step - quant.zero_points[0]) * quant.scales[0];
        worst = std::max(worst, std::fabs(value - expected[i]) / quant.scales[0]);
      }
    }
    return worst;
  }
};

TEST(Ends8, AreBytesWithoutConversions) {
  Ends m(DType::kI8, DType::kI8);
  ASSERT_EQ(m.Quantize({m.Dense(m.In({1, 16}), 8)}), "");
  EXPECT_EQ(m.Ops(), "FULLY_CONNECTED");
  EXPECT_EQ(m.f.value(m.f.inputs[0]).type.dtype, DType::kI8);
  EXPECT_EQ(m.f.value(m.f.outputs[0]).type.dtype, DType::kI8);
  EXPECT_LT(m.Steps(), 1.5);
}

TEST(Ends8, AreUnsignedBehindOneConversion) {
  Ends m(DType::kU8, DType::kU8);
  ASSERT_EQ(m.Quantize({m.Dense(m.In({1, 16}), 8)}), "");
  EXPECT_EQ(m.Ops(), "QUANTIZE FULLY_CONNECTED QUANTIZE");
  EXPECT_EQ(m.f.value(m.f.inputs[0]).type.dtype, DType::kU8);
  EXPECT_EQ(m.f.value(m.f.outputs[0]).type.dtype, DType::kU8);
  EXPECT_LT(m.Steps(), 1.5);
}

TEST(Ends8, ChangeTheOutputOnlyWhereAFloatOpReadsItToo) {
  Ends m(DType::kF32, DType::kI8);
  const ValueId y = m.Dense(m.In({1, 16}), 8);
  m.f.AddNode(Op::kExp, {y}, {m.f.value(y).type});
  ASSERT_EQ(m.Quantize({y}), "");
  EXPECT_EQ(m.f.value(m.f.inputs[0]).type.dtype, DType::kF32);
  EXPECT_EQ(m.f.value(m.f.outputs[0]).type.dtype, DType::kI8);
}

TEST(Ends8, AreRefusedWhereAFloatOpReadsOrComputesThem) {
  Ends in(DType::kI8, DType::kF32);
  const ValueId x = in.In({1, 16});
  in.f.value(x).name = "x";
  EXPECT_THAT(in.Quantize({in.Dense(in.Op1(Op::kExp, {x}), 8)}), HasSubstr("input 'x' cannot be i8: EXP"));
  Ends out(DType::kF32, DType::kU8);
  const ValueId y = out.Op1(Op::kExp, {out.Dense(out.In({1, 16}), 8)});
  out.f.value(y).name = "y";
  EXPECT_THAT(out.Quantize({y}), HasSubstr("output 'y' cannot be u8: EXP"));
}

TEST(Ends8, NeedBytesInside) {
  Ends m(DType::kI8, DType::kF32);
  EXPECT_THAT(m.Quantize({m.Dense(m.In({1, 16}), 8)}, Quantization::kDynamic),
              HasSubstr("require 8-bit activations (--quantize int8)"));
}

}  // namespace
}  // namespace fusebox::converter
