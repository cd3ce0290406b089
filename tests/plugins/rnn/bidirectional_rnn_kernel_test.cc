// SPDX-License-Identifier: Apache-2.0
// RNN and BIDIRECTIONAL_SEQUENCE_RNN by the kernel of UNIDIRECTIONAL_SEQUENCE_RNN, which has its own test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kBatch = 3, kSteps = 4, kInputs = 5, kAhead = 7, kBack = 6;
constexpr char kOneWay[] = "UNIDIRECTIONAL_SEQUENCE_RNN", kBothWays[] = "BIDIRECTIONAL_SEQUENCE_RNN";

using Values = std::vector<double>;

enum class Weights { kF32, kF64, kBytes };

fbx_dtype TypeOf(Weights weights) { return weights == Weights::kF64 ? FBX_F64 : FBX_F32; }

// Weights, recurrent weights, bias, state.
std::vector<FakeTensor> Cell(int64_t cells, Weights weights, uint32_t seed) {
  const std::vector<std::vector<int64_t>> dims = {{cells, kInputs}, {cells, cells}, {cells}, {kBatch, cells}};
  const auto values = RandomVectors(dims, {0.4, 0.4, 0.3, 0.5}, seed);
  std::vector<FakeTensor> cell;
  for (size_t i = 0; i < dims.size(); ++i) {
    const uint32_t flags = i < 3 ? uint32_t{FBX_TENSOR_CONST} : 0;
    if (weights == Weights::kBytes && i < 2) {
      std::vector<int8_t> bytes;
      for (const double v : values[i]) bytes.push_back(static_cast<int8_t>(v * 300));
      cell.push_back(FakeTensor::Of<int8_t>(FBX_I8, dims[i], bytes, flags).Quantized(0.004f));
    } else {
      cell.push_back(TensorOf(TypeOf(weights), dims[i], values[i], flags));
    }
  }
  return cell;
}

std::vector<int64_t> SequenceDims(int64_t width, bool time_major) {
  return time_major ? std::vector<int64_t>{kSteps, kBatch, width}
                    : std::vector<int64_t>{kBatch, kSteps, width};
}

// The same sequence from its last step to its first.
Values Reversed(const Values& x, int64_t width, bool time_major) {
  Values y(x.size());
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t t = 0; t < kSteps; ++t) {
      const auto place = [&](int64_t step) {
        return (time_major ? step * kBatch + b : b * kSteps + step) * width;
      };
      std::copy_n(x.begin() + place(t), width, y.begin() + place(kSteps - 1 - t));
    }
  }
  return y;
}

// The sequence and the final state.
std::vector<Values> OneWay(const Values& x, std::vector<FakeTensor> cell, Weights weights, bool time_major) {
  const FakeHost host;
  const fbx_dtype dtype = TypeOf(weights);
  const int64_t cells = cell[2].dims()[0];
  std::vector<FakeTensor> operands = {TensorOf(dtype, SequenceDims(kInputs, time_major), x)};
  operands.insert(operands.end(), cell.begin(), cell.end());
  FakeNode node(host, KernelOfThePlugin(kOneWay),
                {{"time_major", time_major}, {"fused_activation_function", std::string("TANH")}}, operands,
                {EmptyTensor(dtype, SequenceDims(cells, time_major)), EmptyTensor(dtype, {kBatch, cells})});
  RunNode(host, node);
  return {ValuesOf(node.result(0), dtype), ValuesOf(node.result(1), dtype)};
}

Values Beside(const Values& a, const Values& b) {
  Values both;
  for (int64_t row = 0; row < kBatch * kSteps; ++row) {
    both.insert(both.end(), a.begin() + row * kAhead, a.begin() + (row + 1) * kAhead);
    both.insert(both.end(), b.begin() + row * kBack, b.begin() + (row + 1) * kBack);
  }
  return both;
}

TEST(BidirectionalRnnKernel, IsOneEachWay) {
  for (const Weights weights : {Weights::kF32, Weights::kF64, Weights::kBytes}) {
    for (const bool time_major : {false, true}) {
      for (const bool merge : {false, true}) {
        const fbx_dtype dtype = TypeOf(weights);
        const Values x = RandomVectors({{kBatch * kSteps * kInputs}}, {1}, 5)[0];
        const auto forward = Cell(kAhead, weights, 1), backward = Cell(kBack, weights, 2);
        const auto ahead = OneWay(x, forward, weights, time_major);
        auto back = OneWay(Reversed(x, kInputs, time_major), backward, weights, time_major);
        back[0] = Reversed(back[0], kBack, time_major);

        const FakeHost host(2);
        std::vector<FakeTensor> operands = {TensorOf(dtype, SequenceDims(kInputs, time_major), x)};
        for (const auto& cell : {forward, backward})
          operands.insert(operands.end(), cell.begin(), cell.end());
        operands.resize(12);
        std::vector<FakeTensor> results;
        for (const int64_t width :
             merge ? std::vector<int64_t>{kAhead + kBack} : std::vector<int64_t>{kAhead, kBack})
          results.push_back(EmptyTensor(dtype, SequenceDims(width, time_major)));
        for (const int64_t cells : {kAhead, kBack}) results.push_back(EmptyTensor(dtype, {kBatch, cells}));
        FakeNode node(host, KernelOfThePlugin(kBothWays),
                      {{"time_major", time_major},
                       {"merge_outputs", merge},
                       {"fused_activation_function", std::string("TANH")}},
                      operands, results);
        RunNode(host, node);
        const size_t states = merge ? 1 : 2;
        EXPECT_EQ(ValuesOf(node.result(0), dtype), merge ? Beside(ahead[0], back[0]) : ahead[0]);
        if (!merge) {
          EXPECT_EQ(ValuesOf(node.result(1), dtype), back[0]);
        }
        EXPECT_EQ(ValuesOf(node.result(states), dtype), ahead[1]);
        EXPECT_EQ(ValuesOf(node.result(states + 1), dtype), back[1]);
      }
    }
  }
}

std::string WhyNot(size_t operand, FakeTensor with, size_t outputs = 1) {
  const FakeHost host;
  std::vector<FakeTensor> operands = {F32Tensor({kBatch, kSteps, kInputs})};
  for (const int64_t cells : {kAhead, kBack}) {
    const auto cell = Cell(cells, Weights::kF32, 1);
    operands.insert(operands.end(), cell.begin(), cell.end());
  }
  operands.resize(12);
  operands.resize(std::max<size_t>(operands.size(), operand + 1));
  operands[operand] = std::move(with);
  FakeNode node(host, KernelOfThePlugin(kBothWays), {{"merge_outputs", true}}, operands,
                std::vector<FakeTensor>(outputs, F32Tensor({})));
  return Declined(host, node);
}

TEST(BidirectionalRnnKernel, DeclinesWhatItCannotDo) {
  EXPECT_EQ(WhyNot(12, F32Tensor({1})), "ARITY : has 13 operands, expected 12");
  EXPECT_EQ(WhyNot(9, F32Tensor({kBatch, kSteps, 2})),
            "OPERANDS operand 9: is present: auxiliary inputs are not supported");
  EXPECT_EQ(WhyNot(5, F32Tensor({kBack, 9})), "SHAPE backward RNN, operand 1: dimension 1 is 9, expected 5");
  EXPECT_EQ(WhyNot(4, F32Tensor({kBatch, 1})),
            "SHAPE forward RNN, operand 4: has 3 elements, expected 3 x 7");
  EXPECT_EQ(WhyNot(8, FakeTensor()), "OPERANDS backward RNN, operand 4: is absent");
  EXPECT_EQ(WhyNot(0, F32Tensor({kBatch, kSteps, kInputs}), 0),
            "ARITY : has 0 results, expected 1, and 2 states");
}

TEST(RnnStepKernel, IsOneStep) {
  const FakeHost host;
  for (const Weights weights : {Weights::kF32, Weights::kF64, Weights::kBytes}) {
    const fbx_dtype dtype = TypeOf(weights);
    const auto cell = Cell(kAhead, weights, 1);
    const Values x = RandomVectors({{kBatch * kInputs}}, {1}, 5)[0];
    const FakeAttrs attrs = {{"fused_activation_function", std::string("RELU")}};
    std::vector<FakeTensor> operands = {TensorOf(dtype, {kBatch, 1, kInputs}, x)};
    operands.insert(operands.end(), cell.begin(), cell.end());
    FakeNode sequence(host, KernelOfThePlugin(kOneWay), attrs, operands,
                      {EmptyTensor(dtype, {kBatch, 1, kAhead}), EmptyTensor(dtype, {kBatch, kAhead})});
    RunNode(host, sequence);
    operands[0] = TensorOf(dtype, {kBatch, kInputs}, x);
    FakeNode step(host, KernelOfThePlugin("RNN"), attrs, operands,
                  {EmptyTensor(dtype, {kBatch, kAhead}), EmptyTensor(dtype, {kBatch, kAhead})});
    ASSERT_EQ(step.Infer(), FBX_OK);
    EXPECT_THAT(step.inferred[0].dims, ElementsAre(kBatch, kAhead));
    RunNode(host, step);
    for (const size_t i : {0, 1})
      EXPECT_EQ(ValuesOf(step.result(i), dtype), ValuesOf(sequence.result(i), dtype));
  }
}

}  // namespace
}  // namespace fusebox::testing
