// SPDX-License-Identifier: Apache-2.0
// fusebox.gru in integers beside the op in f64 with the values that the integers stand for. No peer has this
// op.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "plugins/rnn/simd/bytes.h"
#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

constexpr float kStateScale = 2.0F / 255;
constexpr int64_t kStateZero = -1;

struct IntegerCase {
  int64_t batch = 1, steps = 12, inputs = 20, cells = 9;
  bool time_major = false, reset_after = true;
  double input = 1;                 // largest value
  double weight = 0.3, bias = 0.3;  // largest values
  double update_bias = 0;           // added to the bias of the update gate
  float input_scale() const { return static_cast<float>(std::max(input, 1e-6) / 127); }
};

std::vector<std::vector<int64_t>> Dims(const IntegerCase& g) {
  std::vector<std::vector<int64_t>> dims{
      {g.batch, g.steps, g.inputs}, {g.batch, g.cells}, {3 * g.cells, g.inputs},
      {3 * g.cells, g.cells},       {3 * g.cells},      {3 * g.cells}};
  if (g.time_major) std::swap(dims[0][0], dims[0][1]);
  return dims;
}

// A tensor and the numbers that it stands for.
struct Represented {
  FakeTensor integers;
  std::vector<double> values;
};

template <class T>
Represented Represent(fbx_dtype dtype, const std::vector<int64_t>& dims, const std::vector<double>& values,
                      float scale, int64_t zero, uint32_t flags) {
  std::vector<T> steps;
  Represented out;
  for (const double value : values) {
    const double step = std::round(value / static_cast<double>(scale)) + static_cast<double>(zero);
    steps.push_back(static_cast<T>(
        std::clamp<double>(step, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
    out.values.push_back(static_cast<double>(steps.back() - zero) * static_cast<double>(scale));
  }
  out.integers = FakeTensor::Of(dtype, dims, steps, flags).Quantized(scale, zero);
  return out;
}

std::vector<Represented> OperandsOf(const IntegerCase& g) {
  const auto dims = Dims(g);
  auto values = RandomVectors(dims, {g.input, 0.9, g.weight, g.weight, g.bias, g.bias}, 1);
  for (size_t i = 0; i < static_cast<size_t>(g.cells); ++i) values[4][i] += g.update_bias;
  const float weight_scale = static_cast<float>(std::max(g.weight, 1e-6) / 127);
  const float scales[] = {
      g.input_scale(),           kStateScale, weight_scale, weight_scale, g.input_scale() * weight_scale,
      kStateScale * weight_scale};
  std::vector<Represented> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint32_t flags = i >= 2 ? uint32_t{FBX_TENSOR_CONST} : 0;
    const int64_t zero = i == 0 ? 3 : i == 1 ? kStateZero : 0;
    out.push_back(i < 4 ? Represent<int8_t>(FBX_I8, dims[i], values[i], scales[i], zero, flags)
                        : Represent<int32_t>(FBX_I32, dims[i], values[i], scales[i], zero, flags));
  }
  if (!g.reset_after) out[5] = {};
  return out;
}

FakeAttrs AttrsOf(const IntegerCase& g) {
  return {{"time_major", g.time_major}, {"reset_after", g.reset_after}};
}

struct GruValues {
  std::vector<double> output, h;
};

GruValues Definition(const IntegerCase& g, const std::vector<Represented>& stored) {
  const FakeHost host;
  const auto dims = Dims(g);
  std::vector<FakeTensor> operands;
  for (size_t i = 0; i < stored.size(); ++i)
    operands.push_back(stored[i].values.empty() ? FakeTensor()
                                                : TensorOf(FBX_F64, dims[i], stored[i].values));
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), AttrsOf(g), operands,
                {EmptyTensor(FBX_F64, {dims[0][0], dims[0][1], g.cells}), EmptyTensor(FBX_F64, dims[1])});
  RunNode(host, node);
  return {ValuesOf(node.result(0), FBX_F64), ValuesOf(node.result(1), FBX_F64)};
}

std::vector<double> RealStates(const FakeTensor& t) {
  std::vector<double> out;
  for (size_t i = 0; i < t.count(); ++i)
    out.push_back(static_cast<double>(t.data<int8_t>()[i] - kStateZero) * static_cast<double>(kStateScale));
  return out;
}

GruValues RunIntegers(const IntegerCase& g, const std::vector<Represented>& stored, uint32_t threads = 1) {
  const FakeHost host(threads);
  const auto dims = Dims(g);
  std::vector<FakeTensor> operands;
  for (const Represented& operand : stored) operands.push_back(operand.integers);
  const auto result = [](std::vector<int64_t> of) {
    return FakeTensor(FBX_I8, std::move(of)).Allocate(1).Quantized(kStateScale, kStateZero);
  };
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), AttrsOf(g), operands,
                {result({dims[0][0], dims[0][1], g.cells}), result(dims[1])});
  RunNode(host, node);
  return {RealStates(node.result(0)), RealStates(node.result(1))};
}

// In steps of the output.
double StepsApart(const std::vector<double>& is, const std::vector<double>& expected) {
  EXPECT_EQ(is.size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < is.size(); ++i) largest = std::max(largest, std::abs(is[i] - expected[i]));
  return largest / static_cast<double>(kStateScale);
}

double GruError(const IntegerCase& g) {
  const auto stored = OperandsOf(g);
  const GruValues expected = Definition(g, stored);
  const GruValues is = RunIntegers(g, stored);
  return std::max(StepsApart(is.output, expected.output), StepsApart(is.h, expected.h));
}

// Half a step is the rounding of the result. The rest comes from states that products read in 8 bits.
TEST(IntegerGru, IsWithinAStepAndAHalfOfTheOp) {
  for (const bool reset_after : {true, false}) {
    for (const int64_t batch : {1, 2, 3, 4}) {
      for (const int64_t cells : {1, 7, 16, 33}) {
        const IntegerCase g{
            .batch = batch, .cells = cells, .time_major = batch % 2 == 0, .reset_after = reset_after};
        EXPECT_LE(GruError(g), 1.5) << reset_after << " " << batch << " " << cells;
      }
    }
  }
}

TEST(IntegerGru, IsWithinAStepAndAHalfForInputsOfAnySize) {
  for (const bool reset_after : {true, false}) {
    for (const double input : {0.0, 1e-4, 0.05, 8.0, 1000.0}) {
      const IntegerCase g{.batch = 2, .cells = 33, .reset_after = reset_after, .input = input};
      EXPECT_LE(GruError(g), 1.5) << reset_after << " " << input;
    }
  }
}

// Sums of the input and of the state that are larger than 8 cancel out. A step of such a product is 16 times
// as large.
TEST(IntegerGru, AddsLargeSumsOfOppositeSigns) {
  for (const bool reset_after : {true, false}) {
    const IntegerCase g{.batch = 2, .cells = 33, .reset_after = reset_after, .input = 4, .weight = 0.9};
    EXPECT_LE(GruError(g), 6) << reset_after;
  }
}

// A gate of one loses nothing, and a gate near one still moves the state.
TEST(IntegerGru, KeepsItsStateOverLongSequences) {
  for (const bool reset_after : {true, false}) {
    IntegerCase g{.batch = 2, .steps = 3000, .cells = 7, .reset_after = reset_after, .update_bias = 14};
    const auto stored = OperandsOf(g);
    const GruValues is = RunIntegers(g, stored);
    EXPECT_EQ(StepsApart(is.h, stored[1].values), 0) << reset_after;
    g.update_bias = 5;
    EXPECT_LE(GruError(g), 1.5) << reset_after;
  }
}

TEST(IntegerGru, HasTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t batch : {2, 5}) {
    const IntegerCase g{.batch = batch, .steps = 40, .inputs = 65, .cells = 129, .reset_after = batch == 2};
    const auto stored = OperandsOf(g);
    EXPECT_EQ(RunIntegers(g, stored, 1).output, RunIntegers(g, stored, 4).output);
  }
}

TEST(IntegerGru, HasTheSameBitsOnEveryInstructionSet) {
  for (const bool reset_after : {true, false}) {
    const IntegerCase g{.batch = 3, .cells = 33, .reset_after = reset_after};
    const auto stored = OperandsOf(g);
    const GruValues best = RunIntegers(g, stored);
    for (const rnn::ByteKernels* code : rnn::AllByteKernels()) {
      rnn::UseByteKernelsForTest(code);
      EXPECT_EQ(RunIntegers(g, stored).output, best.output) << code->lanes << " lanes";
    }
    rnn::UseByteKernelsForTest(nullptr);
  }
}

TEST(IntegerGru, ReturnsTheInitialStateOfNoSteps) {
  const IntegerCase g{.batch = 2, .steps = 0};
  const auto stored = OperandsOf(g);
  EXPECT_EQ(StepsApart(RunIntegers(g, stored).h, stored[1].values), 0);
}

using GruChange = std::function<void(std::vector<FakeTensor>&, std::vector<FakeTensor>&, FakeAttrs&)>;

std::string WhyNotGru(const GruChange& change) {
  const FakeHost host;
  const IntegerCase g;
  std::vector<FakeTensor> operands;
  for (const Represented& operand : OperandsOf(g)) operands.push_back(operand.integers);
  FakeAttrs attrs = AttrsOf(g);
  const auto result = [](std::vector<int64_t> dims) {
    return FakeTensor(FBX_I8, std::move(dims)).Quantized(kStateScale, kStateZero);
  };
  std::vector<FakeTensor> results{result({1, 12, 9}), result({1, 9})};
  change(operands, results, attrs);
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), attrs, operands, results);
  return Declined(host, node);
}

TEST(IntegerGru, DeclinesOtherActivations) {
  EXPECT_EQ(WhyNotGru([](auto&, auto&, auto&) {}), "status 0");
  EXPECT_EQ(WhyNotGru([](auto&, auto&, FakeAttrs& attrs) { attrs["activation"] = std::string("relu"); }),
            "ATTR attr activation: is not tanh beside i8");
  EXPECT_EQ(WhyNotGru([](auto&, auto&, FakeAttrs& attrs) {
              attrs["recurrent_activation"] = std::string("hard_sigmoid");
            }),
            "ATTR attr recurrent_activation: is not sigmoid beside i8");
}

TEST(IntegerGru, DeclinesAStateThatIsRoundedAfterEachStep) {
  const auto one_step = [](auto& operands, auto& results, auto&) {
    operands[0] = FakeTensor(FBX_I8, {1, 1, 20}).Quantized(0.1F);
    results[0] = FakeTensor(FBX_I8, {1, 1, 9}).Quantized(kStateScale, kStateZero);
  };
  EXPECT_EQ(WhyNotGru(one_step),
            "SHAPE operand 0: has one step, and the state is rounded to 8 bits between calls");
  EXPECT_EQ(WhyNotGru([&](auto& operands, auto& results, auto& attrs) {
              one_step(operands, results, attrs);
              operands[1] =
                  FakeTensor(FBX_I8, {1, 9}, FBX_TENSOR_CONST).Allocate(1).Quantized(kStateScale, kStateZero);
            }),
            "status 0");
}

TEST(IntegerGru, DeclinesOtherScalesAndTypes) {
  EXPECT_EQ(WhyNotGru([](auto&, auto& results, auto&) { results[1].Quantized(0.1F); }),
            "QUANT result 1: has a different scale than the initial state");
  EXPECT_EQ(WhyNotGru([](auto& operands, auto&, auto&) {
              operands[0] = FakeTensor(FBX_I8, {1, 12, 20});
            }),
            "QUANT operand 0: has no single scale");
  EXPECT_EQ(WhyNotGru([](auto& operands, auto&, auto&) { operands[4] = F32Tensor({27}); }),
            "DTYPE operand 4: is f32, expected i32 beside i8 input");
  EXPECT_EQ(WhyNotGru([](auto& operands, auto&, auto&) { operands[5] = FakeTensor(FBX_I32, {27}); }),
            "NONCONST operand 5: is computed; quantized weights must be constant");
  EXPECT_EQ(WhyNotGru([](auto& operands, auto& results, auto&) {
              for (FakeTensor* t : {&operands[1], &results[0], &results[1]}) t->Quantized(1);
            }),
            "QUANT operand 1: has values beyond 64");
}

}  // namespace
}  // namespace fusebox::testing
