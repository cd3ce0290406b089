// SPDX-License-Identifier: Apache-2.0
// How an LSTM with layer normalization or projection is stored in integers, and what is not. What comes out
// is held against the f32 form and stock TFLite in tests/peers/lstm_int8_test.cc.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "converter/quantize/ops8.h"
#include "tests/peers/lstm_int8.h"
#include "tests/peers/lstm_net.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using converter::quantize::Range;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

IntegerForm Stored(const Module& module, const std::vector<Tensor>& samples) {
  auto form = ToIntegers(module, "net", samples);
  EXPECT_TRUE(form) << form.error().message;
  return form ? *std::move(form) : IntegerForm();
}
IntegerForm Stored(const Module& module) { return Stored(module, NoiseSamples(module, 5)); }

std::string TypesOf(const IntegerForm& form, size_t first, size_t count) {
  std::string out;
  for (size_t i = first; i < first + count; ++i) out += (i == first ? "" : " ") + form.TypeOf(i);
  return out;
}

TEST(Lstm8, StoresLayerNormalization) {
  const IntegerForm form = Stored(*LstmNet{.cifg = true, .peephole = true, .layer_norm = true}.Module());
  EXPECT_EQ(TypesOf(form, 0, 12), "i8 none i8 i8 i8 none i8 i8 i8 none i16 i16");
  EXPECT_EQ(TypesOf(form, 12, 8), "none i32 i32 i32 none none i8 i16");
  EXPECT_EQ(TypesOf(form, 20, 4), "none i16 i16 i16");
  for (const size_t gate : {1, 2, 3})
    EXPECT_FLOAT_EQ(form.QuantOf(12 + gate).scales[0], form.QuantOf(20 + gate).scales[0] / 1024);
  ASSERT_EQ(form.lstm().intermediates.size(), 5u);
  EXPECT_EQ(form.QuantWithin(4), form.QuantOf(18)) << "readers want the output's scale there";
}

TEST(Lstm8, StoresAProjection) {
  const IntegerForm form = Stored(*LstmNet{.outputs = 5, .projection_bias = true}.Module());
  EXPECT_EQ(TypesOf(form, 16, 4), "i8 i32 i8 i16");
  EXPECT_THAT(form.QuantWithin(4).zero_points, ElementsAre(0)) << "TFLite 2.9 subtracts it";
  EXPECT_FLOAT_EQ(form.QuantOf(17).scales[0], form.QuantOf(16).scales[0] * form.QuantWithin(4).scales[0]);
}

// A range from one step to another says nothing about the others: here all of it is computed once more.
struct Definition {
  static constexpr size_t kCells = 3, kInputs = 2, kOutputs = 2, kBatch = 2, kSteps = 4, kSamples = 3;
  const Function& f;
  const Node& lstm;
  std::array<Range, 5> seen = {};

  double At(size_t operand, size_t row, size_t column = 0, size_t columns = 1) const {
    const ValueId v = lstm.operands[operand];
    return v == kNoValue ? 0 : f.value(v).data.As<float>()[row * columns + column];
  }
  void See(size_t i, double value) {
    seen[i].min = std::min(seen[i].min, static_cast<float>(value));
    seen[i].max = std::max(seen[i].max, static_cast<float>(value));
  }
  // Before activation.
  std::array<double, kCells> Gate(size_t k, const float* x, const double* h, const double* c) {
    std::array<double, kCells> sums = {};
    double mean = 0, variance = 0;
    for (size_t i = 0; i < kCells; ++i) {
      for (size_t j = 0; j < kInputs; ++j) sums[i] += At(1 + k, i, j, kInputs) * x[j];
      See(k, sums[i]);
      for (size_t j = 0; j < kOutputs; ++j) sums[i] += At(5 + k, i, j, kOutputs) * h[j];
      See(k, sums[i]);
      if (k != 2) sums[i] += At(k == 3 ? 11 : 9 + k, i) * c[i];
      See(k, sums[i]);
      mean += sums[i] / kCells;
    }
    for (const double sum : sums) variance += (sum - mean) * (sum - mean) / kCells;
    for (size_t i = 0; i < kCells; ++i)
      sums[i] = (sums[i] - mean) / std::sqrt(variance + 1e-8) * At(20 + k, i) + At(12 + k, i);
    return sums;
  }
  void Step(const float* x, double* h, double* c) {
    const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
    const auto in = Gate(0, x, h, c), forget = Gate(1, x, h, c), cell = Gate(2, x, h, c);
    for (size_t i = 0; i < kCells; ++i)
      c[i] = sigmoid(forget[i]) * c[i] + sigmoid(in[i]) * std::tanh(cell[i]);
    const auto out = Gate(3, x, h, c);
    h[0] = h[1] = 0;
    for (size_t i = 0; i < kCells; ++i) {
      const double hidden = sigmoid(out[i]) * std::tanh(c[i]);
      See(4, hidden);
      for (size_t j = 0; j < kOutputs; ++j) h[j] += At(16, j, i, kCells) * hidden;
    }
  }
  void Run(const std::vector<Tensor>& samples) {
    const auto x = samples[0].data.As<float>(), h = samples[1].data.As<float>(),
               c = samples[2].data.As<float>();
    for (size_t row = 0; row < kSamples * kBatch; ++row) {
      double output[kOutputs] = {h[2 * row], h[2 * row + 1]},
             cell[kCells] = {c[3 * row], c[3 * row + 1], c[3 * row + 2]};
      for (size_t step = 0; step < kSteps; ++step) {
        // The steps come first, then the batch.
        const size_t sample = row / kBatch, at = (sample * kSteps + step) * kBatch + row % kBatch;
        Step(&x[at * kInputs], output, cell);
      }
    }
  }
};

TEST(Lstm8, MeasuresWhatIsHeldAtEveryStep) {
  const auto module = LstmNet{.batch = Definition::kBatch,
                              .steps = Definition::kSteps,
                              .inputs = Definition::kInputs,
                              .cells = Definition::kCells,
                              .outputs = Definition::kOutputs,
                              .time_major = true,
                              .peephole = true,
                              .layer_norm = true}
                          .Module();
  const auto samples = NoiseSamples(*module, Definition::kSamples);
  const IntegerForm form = Stored(*module, samples);
  Definition definition{*module->functions[0], *module->functions[0]->nodes.back()};
  definition.Run(samples);
  for (size_t i = 0; i < 5; ++i) {
    const Range& range = definition.seen[i];
    const double largest = std::max(-range.min, range.max), scale = form.QuantWithin(i).scales[0];
    EXPECT_NEAR(scale * (i == 4 ? 127 : 32767), largest, 1e-5 * largest) << "intermediate " << i;
    EXPECT_THAT(form.QuantWithin(i).zero_points, ElementsAre(0));
  }
}

// TFLite 2.9 clips a projection as if it had no zero point, and subtracts that of what is not projected.
TEST(Lstm8, GivesAnOutputAZeroPointWhereReadersAddIt) {
  EXPECT_NE(Stored(*LstmNet{.outputs = 5}.Module()).QuantOf(18).zero_points[0], 0);
  EXPECT_EQ(Stored(*LstmNet{.outputs = 5, .projection_clip = 0.3F}.Module()).QuantOf(18).zero_points[0], 0);
  EXPECT_EQ(Stored(*LstmNet{.layer_norm = true}.Module()).QuantOf(18).zero_points[0], 0);
}

// Readers clip at clip / scale, cut off to an integer: no step before the largest value.
TEST(Lstm8, DividesTheLargestValueByAnOutputsScaleToAllOf127) {
  for (int i = 1; i <= 1000; ++i) {
    const float largest = 0.37F * static_cast<float>(i) / 100;
    const auto quant =
        converter::quantize::SymmetricScale({.min = -largest / 2, .max = largest, .seen = true});
    ASSERT_EQ(static_cast<int>(largest / quant->scales[0]), 127) << largest;
  }
}

float LargestOf(const IntegerForm& form, size_t operand) {
  int32_t largest = 0;
  for (const int32_t v : form.function().value(form.lstm().operands[operand]).data.As<int32_t>())
    largest = std::max(largest, std::abs(v));
  return static_cast<float>(largest);
}

TEST(Lstm8, MakesWeightsCoarserForABiasThatWouldNotFit) {
  const auto module = LstmNet{.outputs = 5, .projection_bias = true, .layer_norm = true}.Module();
  Function& f = *module->functions[0];
  const Node& lstm = *f.nodes.back();
  f.value(lstm.operands[13]).data = Buffer::Of<float>(std::vector<float>(8, 3e4F));
  f.value(lstm.operands[17]).data = Buffer::Of<float>(std::vector<float>(5, 3e6F));
  const IntegerForm form = Stored(*module);
  EXPECT_FLOAT_EQ(form.QuantOf(13).scales[0], form.QuantOf(21).scales[0] / 1024);
  EXPECT_FLOAT_EQ(LargestOf(form, 13), 1 << 30);
  EXPECT_FLOAT_EQ(LargestOf(form, 13) * form.QuantOf(13).scales[0], 3e4F);
  EXPECT_FLOAT_EQ(LargestOf(form, 17), 1 << 30);
  EXPECT_FLOAT_EQ(LargestOf(form, 17) * form.QuantOf(17).scales[0], 3e6F);
}

TEST(Lstm8, WarnsOfWhatStockComputesWrong) {
  EXPECT_THAT(
      Stored(*LstmNet{.outputs = 5, .peephole = true}.Module()).notes,
      HasSubstr("UNIDIRECTIONAL_SEQUENCE_LSTM: TFLite (at least 2.9) computes wrong results: it applies "
                "peepholes to 5 cells (the number of outputs) instead of 8"));
  for (const LstmNet& net :
       {LstmNet{.outputs = 8, .peephole = true}, LstmNet{.outputs = 5}, LstmNet{.peephole = true}})
    EXPECT_EQ(Stored(*net.Module()).notes, "");
}

// All of the op, or nothing: what is refused is as it was, or as `dynamic` stores it.
std::string WhyNot(const Module& module, const std::vector<Tensor>& samples) {
  const IntegerForm form = Stored(module, samples);
  const bool hybrid = form.TypeOf(2) == "i8";
  for (size_t i = 0; i < 24; ++i) {
    const bool weights = (i >= 1 && i <= 8) || i == 16;
    EXPECT_THAT(form.TypeOf(i), ::testing::AnyOf(weights && hybrid ? "i8" : "f32", "none")) << i;
  }
  EXPECT_TRUE(form.lstm().intermediates.empty());
  return form.notes;
}
std::string WhyNot(const Module& module) { return WhyNot(module, NoiseSamples(module, 5)); }

TEST(Lstm8, LeavesWhatHasNoIntegerForm) {
  const LstmNet net{.outputs = 5, .layer_norm = true};
  EXPECT_THAT(WhyNot(*LstmNet{.outputs = 5, .layer_norm = true, .activation = "RELU"}.Module()),
              HasSubstr("is not TANH (attr fused_activation_function)"));
  auto module = net.Module();
  Function& computed = *module->functions[0];
  computed.nodes.back()->operands[16] = computed.AddInput({DType::kF32, {5, 8}}, "projection");
  EXPECT_THAT(WhyNot(*module), HasSubstr("stays f32: operand 16 is not constant"));
  module = net.Module();
  Function& infinite = *module->functions[0];
  infinite.value(infinite.nodes.back()->operands[22]).data =
      Buffer::Of<float>(std::vector<float>(8, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(WhyNot(*module), HasSubstr("stays f32: operand 22 is not finite"));
  module = LstmNet{.outputs = 8}.Module();
  Function& diagonal = *module->functions[0];
  for (size_t i = 5; i < 9; ++i)
    diagonal.nodes.back()->operands[i] =
        diagonal.AddConst(DType::kF32, Shape{8}, std::vector<float>(8, 0.5F));
  EXPECT_THAT(WhyNot(*module), HasSubstr("is diagonal, which is supported for f32 and f64 only"));
  module = net.Module();
  auto samples = NoiseSamples(*module, 5);
  samples[2].data = Buffer::Of<float>(std::vector<float>(5 * 8, 100));
  EXPECT_THAT(WhyNot(*module, samples), HasSubstr("has the scale 2^-8, only 2^-15 to 2^-9 are supported"));
}

// Its dense layer becomes integers, the op stays as it is.
TEST(Lstm8, WithWeightsOfBytesStays) {
  for (const bool one_step : {false, true}) {
    const auto module =
        LstmNet{.one_step = one_step, .cifg = true, .weights = LstmNet::Weights::kI8}.Module();
    Function& f = *module->functions[0];
    const ValueId w = f.AddConst<float>(DType::kF32, {2, 8}, std::vector<float>(16, 0.5f));
    Type type = f.value(f.outputs[0]).type;
    type.shape.dims().back() = 2;
    Attrs attrs;
    attrs.Set("keep_num_dims", true);
    f.outputs[0] = f.AddNode(Op::kFullyConnected, {f.outputs[0], w, kNoValue}, {type}, attrs).results[0];
    const IntegerForm form = Stored(*module);
    ASSERT_TRUE(form.module);
    EXPECT_THAT(form.notes, HasSubstr("stays f32: its weights are i8 already"));
    EXPECT_EQ(form.TypeOf(0), "f32");
    EXPECT_EQ(form.TypeOf(2), "i8");
    auto ops = OpsOf(*form.module);
    EXPECT_EQ(ops["QUANTIZE"], 1);
    EXPECT_EQ(ops["DEQUANTIZE"], 1);
  }
}

}  // namespace
}  // namespace fusebox::testing
