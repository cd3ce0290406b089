// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "host/graph/values.h"
#include "host/verify/cases.h"
#include "host/verify/compare.h"
#include "tests/host/verify/pair.h"

namespace fusebox::verify {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Lt;

// z = x + y in 8 bits, as an i8 ADD or through floats.
void BuildSum(Pair& pair, Op replacement, bool through_floats) {
  const auto quant = [](float scale, int64_t zero) {
    return std::make_shared<const Quant>(Quant{.scales = {scale}, .zero_points = {zero}});
  };
  const Type i8{DType::kI8, Shape({2, 64})};
  const auto q = quant(0.04f, 5), out = quant(0.07f, -3);
  const auto [a, x] = pair.Input(i8);
  const auto [b, y] = pair.Input(i8);
  for (const ValueId v : {a, b}) pair.body.value(v).quant = q;
  for (const ValueId v : {x, y}) pair.replacement.value(v).quant = q;
  Function& f = pair.body;
  if (through_floats) {
    const ValueId left = f.AddNode(Op::kDequantize, {a}, {F32({2, 64})}).results[0];
    const ValueId right = f.AddNode(Op::kDequantize, {b}, {F32({2, 64})}).results[0];
    const ValueId sum = f.AddNode(Op::kAdd, {left, right}, {F32({2, 64})}).results[0];
    f.outputs = f.AddNode(Op::kQuantize, {sum}, {i8}).results;
  } else {
    f.outputs = f.AddNode(Op::kAdd, {a, b}, {i8}).results;
  }
  pair.replacement.outputs = pair.replacement.AddNode(replacement, {x, y}, {i8}).results;
  f.value(f.outputs[0]).quant = out;
  pair.replacement.value(pair.replacement.outputs[0]).quant = out;
}

TEST(VerifyFused, ComparesIntegersBitForBit) {
  Pair same, other;
  BuildSum(same, Op::kAdd, false);
  const Verdict verdict = same.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
  EXPECT_THAT(verdict.Summary(),
              HasSubstr("agrees (integers, 6 cases, worst 0, quantized results bit for bit)"));
  BuildSum(other, Op::kSub, false);
  EXPECT_EQ(other.Ask().outcome, Outcome::kDiffers);
  EXPECT_EQ(other.Ask(false).outcome, Outcome::kDiffers);
}

TEST(VerifyFused, AllowsOneStepBetweenFloatsAndIntegers) {
  Pair near, far;
  BuildSum(near, Op::kAdd, true);
  const Verdict verdict = near.Ask();
  EXPECT_EQ(verdict.outcome, Outcome::kAgrees) << verdict.Summary();
  EXPECT_THAT(verdict.Summary(), HasSubstr("quantized results "));
  BuildSum(far, Op::kSub, true);
  EXPECT_EQ(far.Ask().outcome, Outcome::kDiffers);
}

// x w with 4-bit weights
TEST(VerifyFused, RunsBodiesWithInt4Weights) {
  for (const bool right : {true, false}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({2, 4}));
    const auto product = [](Function& f, ValueId operand, uint8_t last) {
      const Type i4{DType::kI4, Shape({2, 4})};
      const ValueId w = f.AddConst(i4, Buffer::Of<uint8_t>(std::vector<uint8_t>{0x21, 0x43, 0xfe, last}));
      f.value(w).quant = std::make_shared<const Quant>(Quant{.scales = {0.5f}, .zero_points = {0}});
      f.outputs = f.AddNode(Op::kFullyConnected, {operand, w, kNoValue}, {F32({2, 2})}).results;
    };
    product(pair.body, x, 0x57);
    product(pair.replacement, y, right ? 0x57 : 0x47);
    const Verdict verdict = pair.Ask();
    EXPECT_EQ(verdict.outcome, right ? Outcome::kAgrees : Outcome::kDiffers) << verdict.Summary();
  }
}

// A body that rounds its operands to 8 bits is off by its own rounding; one that does not may replace it.
TEST(VerifyFused, ComparesBodiesWith8BitWeightsInF64) {
  for (const float factor : {1.0f, 1.1f}) {
    Pair pair;
    const auto [x, y] = pair.Input(F32({2, 64}));
    std::vector<int8_t> bytes(32 * 64);
    std::vector<float> floats(bytes.size());
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<int8_t>(static_cast<int>(i * 37 % 255) - 127);
      floats[i] = static_cast<float>(bytes[i]) * 0.001f * factor;
    }
    Function& f = pair.body;
    const ValueId w = f.AddConst({DType::kI8, Shape({32, 64})}, Buffer::Of<int8_t>(bytes));
    f.value(w).quant = std::make_shared<const Quant>(Quant{.scales = {0.001f}, .zero_points = {0}});
    f.outputs = f.AddNode(Op::kFullyConnected, {x, w, kNoValue}, {F32({2, 32})}).results;
    Function& g = pair.replacement;
    const ValueId v = g.AddConst(DType::kF32, {32, 64}, std::move(floats));
    g.outputs = g.AddNode(Op::kFullyConnected, {y, v, kNoValue}, {F32({2, 32})}).results;
    const Verdict verdict = pair.Ask();
    EXPECT_EQ(verdict.outcome, factor == 1 ? Outcome::kAgrees : Outcome::kDiffers) << verdict.Summary();
    EXPECT_EQ(verdict.truth, "f64");
  }
}

// DEQUANTIZE has no f64 form: its results are converted.
TEST(VerifyFused, RunsBodiesThatDequantizeInF64) {
  for (const Op op : {Op::kMul, Op::kAdd}) {
    Pair pair;
    const Type i8{DType::kI8, Shape({2, 64})};
    const auto [x, y] = pair.Input(i8);
    const auto quant = std::make_shared<const Quant>(Quant{.scales = {0.04f}, .zero_points = {5}});
    pair.body.value(x).quant = pair.replacement.value(y).quant = quant;
    const auto squared = [](Function& f, ValueId bytes, Op operation) {
      const ValueId real = f.AddNode(Op::kDequantize, {bytes}, {F32({2, 64})}).results[0];
      f.outputs = f.AddNode(operation, {real, real}, {F32({2, 64})}).results;
    };
    squared(pair.body, x, Op::kMul);
    squared(pair.replacement, y, op);
    const Verdict verdict = pair.Ask();
    EXPECT_EQ(verdict.outcome, op == Op::kMul ? Outcome::kAgrees : Outcome::kDiffers) << verdict.Summary();
    EXPECT_EQ(verdict.truth, "f64");
  }
}

TEST(CompareResult, ToleratesOneStepOfQuantizedResults) {
  const auto compared = [](int8_t is, bool quantized) {
    const Type type{DType::kI8, Shape({1})};
    const Tensor fused{type, Buffer::Of<int8_t>(std::vector<int8_t>{is})};
    const Tensor body{type, Buffer::Of<int8_t>(std::vector<int8_t>{7})};
    Case out{.name = "normal", .passed = true};
    CompareResult(0, fused, body, body, {1e-6, 1e-5}, {}, quantized, out);
    return out;
  };
  EXPECT_TRUE(compared(8, true).passed);
  EXPECT_EQ(compared(8, true).steps, 1);
  EXPECT_EQ(compared(7, true).steps, 0);
  EXPECT_FALSE(compared(9, true).passed);
  EXPECT_FALSE(compared(8, false).passed);
}

TEST(Cases, QuantizedOperandsCoverTheirRange) {
  const Quant quant{.scales = {0.1f}, .zero_points = {7}};
  const auto values = [&](DType dtype, ValueClass c) {
    return ToDoubles(MakeOperand({dtype, Shape({999})}, c, 1, 0, &quant));
  };
  EXPECT_THAT(values(DType::kI8, ValueClass::kNormal), Contains(Lt(-100)));
  EXPECT_THAT(values(DType::kI8, ValueClass::kZero), Each(7));
  const auto nibbles = values(DType::kI4, ValueClass::kNormal);
  EXPECT_EQ(nibbles.size(), 999u);
  EXPECT_THAT(nibbles, AllOf(Contains(-8), Contains(7), Each(AllOf(Ge(-8), Le(7)))));
}

}  // namespace
}  // namespace fusebox::verify
