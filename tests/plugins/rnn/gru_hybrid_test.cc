// SPDX-License-Identifier: Apache-2.0
// fusebox.gru with weights of 8 bits beside the f32 op with the values that they stand for. No peer has this
// op.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

struct HybridCase {
  int64_t batch = 1, steps = 1, inputs = 20, cells = 9;
  bool time_major = false, reset_after = true, asymmetric = false;
  std::string activation = "tanh";
};

constexpr float kScale[] = {0.01F, 0.008F};

// Operands 0 to 5; weights are whole numbers of steps.
std::vector<std::vector<int64_t>> Dims(const HybridCase& g) {
  std::vector<std::vector<int64_t>> dims{
      {g.batch, g.steps, g.inputs}, {g.batch, g.cells}, {3 * g.cells, g.inputs},
      {3 * g.cells, g.cells},       {3 * g.cells},      {3 * g.cells}};
  if (g.time_major) std::swap(dims[0][0], dims[0][1]);
  return dims;
}

FakeTensor Stored(const std::vector<int64_t>& dims, const std::vector<double>& steps, float scale) {
  std::vector<int8_t> values;
  for (const double step : steps) values.push_back(static_cast<int8_t>(std::lround(step)));
  return FakeTensor::Of(FBX_I8, dims, values, FBX_TENSOR_CONST).Quantized(scale);
}

struct GruResult {
  std::vector<double> output, h;
};

GruResult RunGru(const HybridCase& g, bool stored, uint32_t threads = 1) {
  const FakeHost host(threads);
  const auto dims = Dims(g);
  auto values = RandomVectors(dims, {1, 0.5, 127, 127, 0.3, 0.3}, 1);
  std::vector<FakeTensor> operands;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool weights = i == 2 || i == 3;
    if (weights && stored) {
      operands.push_back(Stored(dims[i], values[i], kScale[i - 2]));
      continue;
    }
    for (double& value : values[i])
      value = weights ? static_cast<double>(std::lround(value)) * static_cast<double>(kScale[i - 2]) : value;
    operands.push_back(TensorOf(FBX_F32, dims[i], values[i], i >= 2 ? uint32_t{FBX_TENSOR_CONST} : 0));
  }
  if (!g.reset_after) operands[5] = FakeTensor();
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"),
                {{"time_major", g.time_major},
                 {"reset_after", g.reset_after},
                 {"activation", g.activation},
                 {"recurrent_activation", std::string("sigmoid")},
                 {"asymmetric_quantize_inputs", g.asymmetric}},
                operands,
                {EmptyTensor(FBX_F32, {dims[0][0], dims[0][1], g.cells}), EmptyTensor(FBX_F32, dims[1])});
  RunNode(host, node);
  return {ValuesOf(node.result(0), FBX_F32), ValuesOf(node.result(1), FBX_F32)};
}

// A step of the input is 1/127, of the state half of that; sums of so many of them, rounded by half a step at
// most.
TEST(HybridGru, IsTheOpUpToTheRoundingOfItsVectors) {
  for (const bool reset_after : {true, false}) {
    for (const bool asymmetric : {true, false}) {
      for (const int64_t cells : {1, 8, 9, 16, 33}) {
        const HybridCase g{.batch = 3,
                           .steps = 4,
                           .cells = cells,
                           .time_major = cells == 9,
                           .reset_after = reset_after,
                           .asymmetric = asymmetric};
        const GruResult is = RunGru(g, true), expected = RunGru(g, false);
        EXPECT_LE(Difference(is.output, expected.output), 0.03) << cells;
        EXPECT_GT(Difference(is.output, expected.output), 0) << cells;
        EXPECT_LE(Difference(is.h, expected.h), 0.03) << cells;
      }
    }
  }
}

// Zeros and largest values are exact, so that nothing is lost here.
TEST(HybridGru, IsExactWhereItsVectorsAre) {
  const FakeHost host;
  for (const bool reset_after : {true, false}) {
    const auto run = [&](bool stored) {
      const std::vector<double> steps = {100, -50, 30, 20, 10, -90}, recurrent = {40, -60, 80};
      std::vector<FakeTensor> operands{TensorOf(FBX_F32, {1, 2, 2}, {0.5, 0, 0, -2}),
                                       TensorOf(FBX_F32, {1, 1}, {0.75})};
      const auto weights = [&](std::vector<double> values, std::vector<int64_t> dims) {
        if (stored) return Stored(dims, values, 0.01F);
        for (double& value : values) value *= static_cast<double>(0.01F);
        return TensorOf(FBX_F32, dims, values, FBX_TENSOR_CONST);
      };
      operands.push_back(weights(steps, {3, 2}));
      operands.push_back(weights(recurrent, {3, 1}));
      operands.push_back(TensorOf(FBX_F32, {3}, {0.1, 0.2, 0.3}, FBX_TENSOR_CONST));
      operands.push_back(reset_after ? TensorOf(FBX_F32, {3}, {0.4, 0.5, 0.6}, FBX_TENSOR_CONST)
                                     : FakeTensor());
      FakeNode node(host, KernelOfThePlugin("fusebox.gru"), {{"reset_after", reset_after}}, operands,
                    {EmptyTensor(FBX_F32, {1, 2, 1}), EmptyTensor(FBX_F32, {1, 1})});
      RunNode(host, node);
      return ValuesOf(node.result(0), FBX_F32);
    };
    EXPECT_LE(Difference(run(true), run(false)), 1e-6) << reset_after;
  }
}

TEST(HybridGru, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t batch : {2, 5}) {
    const HybridCase g{.batch = batch, .steps = 3, .cells = 33, .reset_after = false};
    EXPECT_EQ(RunGru(g, true, 1).output, RunGru(g, true, 4).output);
  }
}

TEST(HybridGru, TakesBothWeightsOrNone) {
  const auto why = [](size_t change, const FakeTensor& to) {
    const FakeHost host;
    std::vector<FakeTensor> operands{F32Tensor({1, 3, 5}), F32Tensor({1, 7})};
    const auto stored = [](std::vector<int64_t> dims) {
      return FakeTensor(FBX_I8, std::move(dims), FBX_TENSOR_CONST).Allocate(1).Quantized(0.1F);
    };
    operands.push_back(stored({21, 5}));
    operands.push_back(stored({21, 7}));
    operands.push_back(F32Tensor({21}));
    operands.push_back(F32Tensor({21}));
    operands[change] = to;
    FakeNode node(host, KernelOfThePlugin("fusebox.gru"), {}, operands, {F32Tensor({}), F32Tensor({})});
    return Declined(host, node);
  };
  EXPECT_EQ(why(0, F32Tensor({1, 3, 5})), "status 0");
  EXPECT_EQ(why(3, F32Tensor({21, 7})), "DTYPE operand 3: is f32 beside other weights of i8");
  EXPECT_EQ(why(2, FakeTensor(FBX_I8, {21, 5}).Quantized(0.1F)),
            "NONCONST operand 2: is computed; quantized weights must be constant");
  EXPECT_EQ(why(2, FakeTensor(FBX_I8, {21, 5}, FBX_TENSOR_CONST).Allocate(1)),
            "QUANT operand 2: has no single scale");
}

}  // namespace
}  // namespace fusebox::testing
