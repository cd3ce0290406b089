// SPDX-License-Identifier: Apache-2.0
// What the quantized forms of the LSTM decline, each with its reason. Their numbers are held against stock
// TFLite's (tests/peers).
#include <gtest/gtest.h>

#include <functional>

#include "tests/plugins/rnn/kernel_case.h"

namespace fusebox::testing {
namespace {

using Tensors = std::vector<FakeTensor>;
constexpr uint32_t kConst = FBX_TENSOR_CONST;

FakeTensor Weights(std::vector<int64_t> dims) {
  return FakeTensor(FBX_I8, std::move(dims), kConst).Allocate(1).Quantized(0.01F);
}

// 3 inputs, 4 cells, without the input gate: the forget gate's operands are the first ones.
Tensors Shared(fbx_dtype bias) {
  Tensors t(24);
  for (size_t gate = 1; gate < 4; ++gate) {
    t[1 + gate] = Weights({4, 3});
    t[5 + gate] = Weights({4, 4});
    t[12 + gate] = FakeTensor(bias, {4}, kConst).Allocate(4);
  }
  return t;
}
Tensors Hybrid() {
  Tensors t = Shared(FBX_F32);
  t[0] = FakeTensor(FBX_F32, {1, 2, 3});
  t[18] = FakeTensor(FBX_F32, {1, 4});
  t[19] = FakeTensor(FBX_F32, {1, 4});
  return t;
}
Tensors Integers() {
  Tensors t = Shared(FBX_I32);
  t[0] = FakeTensor(FBX_I8, {1, 2, 3}).Quantized(0.1F, 3);
  t[18] = FakeTensor(FBX_I8, {1, 4}).Quantized(0.01F, -1);
  t[19] = FakeTensor(FBX_I16, {1, 4}).Quantized(0x1p-11F);
  return t;
}

using Change = std::function<void(Tensors&, FakeAttrs&)>;
std::string WhyNot(Tensors operands, const Change& change) {
  const FakeHost host;
  FakeAttrs attrs = {{"fused_activation_function", std::string("TANH")}};
  Tensors results = {operands[0], operands[18], operands[19]};
  if (operands[0].abi()->dtype == FBX_I8) results[0].Quantized(0.01F, -1);
  change(operands, attrs);
  FakeNode node(host, KernelOfThePlugin("UNIDIRECTIONAL_SEQUENCE_LSTM"), attrs, std::move(operands),
                std::move(results));
  return Declined(host, node);
}
std::string WhyNotHybrid(const Change& change) { return WhyNot(Hybrid(), change); }
std::string WhyNotIntegers(const Change& change) { return WhyNot(Integers(), change); }

TEST(HybridLstm, IsTakenAsItIs) {
  EXPECT_EQ(WhyNotHybrid([](Tensors&, FakeAttrs&) {}), "status 0");
}
TEST(HybridLstm, DeclinesComputedWeights) {
  EXPECT_EQ(WhyNotHybrid([](Tensors& t, FakeAttrs&) { t[3] = FakeTensor(FBX_I8, {4, 3}).Quantized(1); }),
            "NONCONST operand 3: is computed; quantized weights must be constant");
}
TEST(HybridLstm, DeclinesWeightsWithoutOneScale) {
  EXPECT_EQ(
      WhyNotHybrid([](Tensors& t, FakeAttrs&) { t[7] = FakeTensor(FBX_I8, {4, 4}, kConst).Allocate(1); }),
      "QUANT operand 7: has no single scale");
  EXPECT_EQ(WhyNotHybrid([](Tensors& t, FakeAttrs&) { t[7].Quantized(0); }),
            "QUANT operand 7: has no single scale");
  EXPECT_EQ(WhyNotHybrid([](Tensors& t, FakeAttrs&) { t[7].Quantized(1, 2); }),
            "QUANT operand 7: has a zero point");
}
TEST(HybridLstm, DeclinesDiagonalWeights) {
  EXPECT_EQ(WhyNotHybrid([](Tensors& t, FakeAttrs&) {
              for (const size_t i : {6, 7, 8}) t[i] = Weights({4});
            }),
            "OPERANDS operand 6: is diagonal, which is supported for f32 and f64 only");
}
TEST(HybridLstm, DeclinesRowsThatSumsOf32BitsCannotTake) {
  EXPECT_EQ(WhyNotHybrid([](Tensors& t, FakeAttrs&) {
              t[0] = FakeTensor(FBX_F32, {1, 2, 65537});
              for (const size_t i : {2, 3, 4}) t[i] = Weights({4, 65537});
            }),
            "SHAPE operand 2: has rows longer than 65536");
}

TEST(IntegerLstm, IsTakenAsItIs) {
  EXPECT_EQ(WhyNotIntegers([](Tensors&, FakeAttrs&) {}), "status 0");
}
TEST(IntegerLstm, DeclinesComputedOperands) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[13] = FakeTensor(FBX_I32, {4}); }),
            "NONCONST operand 13: is computed; quantized weights must be constant");
}
TEST(IntegerLstm, DeclinesScalesThatAreNotThere) {
  EXPECT_EQ(
      WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[2] = FakeTensor(FBX_I8, {4, 3}, kConst).Allocate(1); }),
      "QUANT operand 2: has no single scale");
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[0] = FakeTensor(FBX_I8, {1, 2, 3}); }),
            "QUANT operand 0: has no single scale");
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) {
              for (const size_t i : {10, 11}) t[i] = FakeTensor(FBX_I16, {4}, kConst).Allocate(2);
            }),
            "QUANT operand 10: has no single scale");
}
TEST(IntegerLstm, DeclinesAZeroPointThatIsNoneOf8Bits) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[0].Quantized(0.1F, int64_t{1} << 40); }),
            "QUANT operand 0: has the zero point 1099511627776");
}
TEST(IntegerLstm, DeclinesAStateThatIsNotQuantizedAsTheOutput) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[18].Quantized(0.02F, -1); }),
            "QUANT operand 18: has a different scale than the output");
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[18].Quantized(0.01F, 1); }),
            "QUANT operand 18: has a different scale than the output");
}
TEST(IntegerLstm, DeclinesCellStatesThatAreNoPowersOfTwo) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[19].Quantized(0.001F); }),
            "QUANT operand 19: has a scale that is not a power of two");
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[19].Quantized(0x1p-16F); }),
            "QUANT operand 19: has the scale 2^-16, only 2^-15 to 2^-9 are supported");
}
TEST(IntegerLstm, DeclinesOtherActivations) {
  EXPECT_EQ(
      WhyNotIntegers([](Tensors&, FakeAttrs& a) { a["fused_activation_function"] = std::string("RELU"); }),
      "ATTR attr fused_activation_function: is not TANH");
}
TEST(IntegerLstm, DeclinesDiagonalWeights) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) {
              for (const size_t i : {6, 7, 8}) t[i] = Weights({4});
            }),
            "OPERANDS operand 6: is diagonal, which is supported for f32 and f64 only");
}
TEST(IntegerLstm, DeclinesScalesOnTheWayThatTheFileDoesNotSay) {
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) { t[16] = Weights({4, 4}); }),
            "QUANT intermediate 4: is absent, so its scale is unknown");
  EXPECT_EQ(WhyNotIntegers([](Tensors& t, FakeAttrs&) {
              for (const size_t i : {21, 22, 23})
                t[i] = FakeTensor(FBX_I16, {4}, kConst).Allocate(2).Quantized(0.1F);
            }),
            "QUANT intermediate 1: is absent, so its scale is unknown");
}

}  // namespace
}  // namespace fusebox::testing
