// SPDX-License-Identifier: Apache-2.0
// Huge negative numbers that SOFTMAX is to pass over, in 8 bits; and values that are no numbers.
#include "converter/quantize/quantize.h"
#include "tests/converter/quantize/eight.h"

namespace fusebox::converter {
namespace {

using ::testing::HasSubstr;

// Two kinds of columns: ones up to some place, zeros from there on.
std::vector<float> Mask(std::mt19937& random, size_t count) {
  std::vector<float> values(count, 1.0f);
  for (size_t i = std::uniform_int_distribution<size_t>(2, count)(random); i < count; ++i) values[i] = 0;
  return values;
}

struct Attention : Eight {
  ValueId scores, mask;
  Attention() {
    scores = Dense(In({1, 8, 16}), 8);
    mask = In({1, 1, 8});
    fill[1] = Mask;
  }
  ValueId Added(float far) {
    const ValueId hidden = Op1(Op::kSub, {C(1), mask});
    return Op1(Op::kAdd, {scores, Op1(Op::kMul, {hidden, C(far)})});
  }
};

TEST(Masks8, AreAdded) {
  for (const float far : {-1e30f, -1e9f, -65504.0f, -1e4f, -100.0f}) {
    Attention m;
    ASSERT_EQ(m.Quantize({m.Softmax(m.Added(far))}), "");
    EXPECT_GT(m.Snr(), 24) << far << ": " << m.Ops();
  }
}

TEST(Masks8, AreAddedBeforeAReshape) {
  for (const float far : {-1e9f, -1e4f}) {
    Attention m;
    ASSERT_EQ(m.Quantize({m.Softmax(m.Reshape(m.Added(far), {8, 8}))}), "");
    EXPECT_GT(m.Snr(), 24) << far << ": " << m.Ops();
  }
}

TEST(Masks8, AreSelected) {
  for (const float far : {-1e9f, -1e4f}) {
    Attention m;
    const ValueId on = m.Op1(Op::kGreater, {m.mask, m.C(0.5f)});
    const ValueId y = m.Op1(Op::kSelectV2, {on, m.scores, m.C(far)});
    ASSERT_EQ(m.Quantize({m.Softmax(m.Reshape(y, {8, 8}))}), "");
    EXPECT_GT(m.Snr(), 24) << far << ": " << m.Ops();
  }
}

// The first row of each sample is masked throughout: what comes of it nobody reads.
TEST(Masks8, MayHideWholeRows) {
  Attention m;
  std::vector<float> rows(8);
  rows[0] = -1e4f;
  const ValueId y = m.Softmax(m.Op1(Op::kAdd, {m.scores, m.C({1, 8, 1}, rows)}));
  ASSERT_EQ(m.Quantize({m.Op1(Op::kSlice, {y, m.Ints({0, 1, 0}), m.Ints({1, 7, 8})})}), "");
  EXPECT_GT(m.Snr(), 24) << m.Ops();
}

TEST(Masks8, ValuesThatAreNotFiniteStay) {
  Eight m;
  const ValueId x = m.Op1(Op::kLog, {m.Op1(Op::kRelu, {m.Dense(m.In({1, 16}), 16)})});
  ASSERT_EQ(m.Quantize({m.Op1(Op::kTanh, {m.Reshape(x, {4, 4})})}), "");
  EXPECT_THAT(m.Notes(), HasSubstr("RESHAPE: stays f32: its values are not all finite"));
  EXPECT_THAT(m.Ops(), HasSubstr("LOG RESHAPE TANH"));
}

TEST(Masks8, CalibrationDataMustBeNumbers) {
  Eight m;
  m.fill[0] = [](std::mt19937&, size_t count) { return std::vector<float>(count, NAN); };
  EXPECT_THAT(m.Quantize({m.Dense(m.In({1, 16}), 16)}), HasSubstr("in0.npy: sample 0 has non-finite values"));
}

TEST(Masks8, CalibrationDataMustBeThere) {
  Eight m;
  const ValueId x = m.In({-1, 16});
  m.f.outputs = {m.Op1(Op::kTanh, {x})};
  m.Sign(m.f);
  const std::string dir = ::testing::TempDir() + "/none";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  m.options.quantization = Quantization::kInt8;
  m.options.calibration = dir;
  EXPECT_TRUE(WriteNpy(dir + "/in0.npy", Floats({0, 16}, {})));
  EXPECT_THAT(m.Run(QuantizeWeights), HasSubstr("in0.npy: holds f32[0,16], which is empty"));
  std::filesystem::remove(dir + "/in0.npy");
  for (const char* number : {"0", "1", "3"})
    EXPECT_TRUE(WriteNpy(dir + "/in0." + number + ".npy", Floats({1, 16}, std::vector<float>(16))));
  EXPECT_THAT(m.Run(QuantizeWeights), HasSubstr("in0.2.npy: missing, although there are 3 numbered files"));
}

// As for `run --input-dir`.
TEST(Masks8, CalibrationDataGoesByNumberBeforeName) {
  Eight m;
  const ValueId a = m.In({1, 4}), b = m.In({1, 4});
  m.f.outputs = {m.Op1(Op::kTanh, {a}), m.Op1(Op::kTanh, {b})};
  m.Sign(m.f);
  m.module.signatures[0].input_names = {"in1", "in0"};
  const std::string dir = ::testing::TempDir() + "/crossed";
  std::filesystem::create_directories(dir);
  for (const char* name : {"in0", "in1"})
    EXPECT_TRUE(WriteNpy(dir + "/" + name + ".npy", Floats({1, 4}, std::vector<float>(4, name[2] - '0'))));
  const auto samples = quantize::ReadCalibration(m.module, m.module.signatures[0], dir);
  ASSERT_TRUE(samples) << samples.error().message;
  EXPECT_EQ(FloatsOf((*samples)[0][0])[0], 0);
  EXPECT_EQ(FloatsOf((*samples)[0][1])[0], 1);
}

TEST(Masks8, FunctionsWithoutInputsNeedNoCalibrationData) {
  Eight m;
  Function& constant = m.Add("constant");
  const ValueId c = constant.AddConst<float>(DType::kF32, {2}, {1, -1});
  constant.outputs = {constant.AddNode(Op::kTanh, {c}, {F32({2})}).results[0]};
  m.Sign(constant);
  EXPECT_EQ(m.Quantize({m.Dense(m.In({1, 16}), 16)}), "");
}

}  // namespace
}  // namespace fusebox::converter
