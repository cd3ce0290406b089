// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/plugins/rnn/instruction_sets.h"
#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kOp[] = "UNIDIRECTIONAL_SEQUENCE_RNN";

struct RnnCase {
  int64_t batch = 1, steps = 3, inputs = 5, cells = 7;
  bool time_major = false;
  std::string activation = "TANH";
  bool constant_weights = true;
  double weight_scale = 0.4;
};

using Vectors = std::vector<std::vector<double>>;

std::vector<std::vector<int64_t>> Dims(const RnnCase& c) {
  std::vector<std::vector<int64_t>> dims{
      {c.batch, c.steps, c.inputs}, {c.cells, c.inputs}, {c.cells, c.cells}, {c.cells}, {c.batch, c.cells}};
  if (c.time_major) std::swap(dims[0][0], dims[0][1]);
  return dims;
}

Vectors RandomOperands(const RnnCase& c) {
  return RandomVectors(Dims(c), {1, c.weight_scale, c.weight_scale, 0.3, 0.5}, 1);
}

double Act(const std::string& name, double x) {
  if (name == "TANH") return std::tanh(x);
  if (name == "NONE") return x;
  if (name == "RELU_N1_TO_1") return std::clamp(x, -1.0, 1.0);
  return std::min(std::max(x, 0.0), name == "RELU6" ? 6.0 : 1e300);
}

struct RnnResult {
  std::vector<double> output, h;
};

RnnResult Definition(const RnnCase& c, const Vectors& in) {
  const auto n = static_cast<size_t>(c.inputs), u = static_cast<size_t>(c.cells);
  const auto batch = static_cast<size_t>(c.batch), steps = static_cast<size_t>(c.steps);
  RnnResult result{std::vector<double>(batch * steps * u), in[4]};
  for (size_t row = 0; row < batch; ++row) {
    for (size_t t = 0; t < steps; ++t) {
      const size_t at = c.time_major ? t * batch + row : row * steps + t;
      for (size_t i = 0; i < u; ++i) {
        double sum = in[3][i];
        for (size_t k = 0; k < n; ++k) sum += in[1][i * n + k] * in[0][at * n + k];
        for (size_t k = 0; k < u; ++k) sum += in[2][i * u + k] * result.h[row * u + k];
        result.output[at * u + i] = Act(c.activation, sum);
      }
      for (size_t i = 0; i < u; ++i) result.h[row * u + i] = result.output[at * u + i];
    }
  }
  return result;
}

std::vector<FakeTensor> Operands(const RnnCase& c, fbx_dtype dtype, const Vectors& values) {
  std::vector<FakeTensor> operands;
  const auto dims = Dims(c);
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool constant = i >= 1 && i <= 3 && c.constant_weights;
    operands.push_back(TensorOf(dtype, dims[i], values[i], constant ? uint32_t{FBX_TENSOR_CONST} : 0));
  }
  return operands;
}

FakeAttrs Attributes(const RnnCase& c) {
  return {{"time_major", c.time_major}, {"fused_activation_function", c.activation}};
}

// `shared`: the final state has the memory of the operand, as in a host.
RnnResult RunRnn(const RnnCase& c, fbx_dtype dtype, const Vectors& values, uint32_t threads = 1,
                 bool shared = true) {
  const FakeHost host(threads);
  const auto dims = Dims(c);
  auto operands = Operands(c, dtype, values);
  FakeTensor final_state = EmptyTensor(dtype, dims[4]);
  if (shared) final_state.ShareMemoryOf(operands[4]);
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(c), operands,
                {EmptyTensor(dtype, {dims[0][0], dims[0][1], c.cells}), final_state});
  RunNode(host, node);
  return {ValuesOf(node.result(0), dtype), ValuesOf(node.result(1), dtype)};
}

void ExpectNear(const RnnCase& c, fbx_dtype dtype, double tolerance, uint32_t threads = 1) {
  const Vectors values = RandomOperands(c);
  const RnnResult expected = Definition(c, values);
  for (const bool shared : {true, false}) {
    const RnnResult is = RunRnn(c, dtype, values, threads, shared);
    EXPECT_LE(Difference(is.output, expected.output), tolerance);
    EXPECT_LE(Difference(is.h, expected.h), tolerance);
  }
}

TEST(RnnKernel, IsItsDefinitionWithEveryActivation) {
  for (const char* activation : {"TANH", "RELU", "RELU_N1_TO_1", "RELU6", "NONE"}) {
    for (const bool time_major : {true, false}) {
      RnnCase c{.batch = 3, .time_major = time_major, .activation = activation};
      ExpectNear(c, FBX_F32, 2e-6);
      ExpectNear(c, FBX_F64, 1e-13);
      c.constant_weights = false;
      ExpectNear(c, FBX_F32, 2e-6);
    }
  }
}

TEST(RnnKernel, TakesOddSizes) {
  for (const int64_t cells : {1, 8, 15, 17, 33, 130}) {
    for (const int64_t batch : {1, 2, 7})
      ExpectNear({.batch = batch, .inputs = 2, .cells = cells, .weight_scale = 0.1}, FBX_F32, 1e-6);
  }
  ExpectNear({.batch = 2, .steps = 0}, FBX_F32, 0);
  ExpectNear({.batch = 2, .steps = 0}, FBX_F64, 0);
}

TEST(RnnKernel, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t batch : {1, 8}) {
    const RnnCase c{.batch = batch, .steps = 3, .inputs = 512, .cells = 600, .weight_scale = 0.03};
    const Vectors values = RandomOperands(c);
    const RnnResult one = RunRnn(c, FBX_F32, values, 1), four = RunRnn(c, FBX_F32, values, 4);
    EXPECT_EQ(one.output, four.output);
    EXPECT_EQ(one.h, four.h);
  }
}

TEST(RnnKernel, AgreesOnEveryInstructionSet) {
  OnEveryInstructionSet([&] {
    for (const int64_t batch : {1, 7})
      ExpectNear({.batch = batch, .cells = 33, .weight_scale = 0.2}, FBX_F32, 1e-6);
  });
}

TEST(RnnKernel, InfersSequenceAndState) {
  const RnnCase c{.batch = 2};
  const FakeHost host;
  auto operands = Operands(c, FBX_F32, RandomOperands(c));
  operands[0] = F32Tensor({-1, -1, 5});
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(c), operands, {F32Tensor({}), F32Tensor({})});
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_THAT(node.inferred[0].dims, ElementsAre(-1, -1, 7));
  EXPECT_THAT(node.inferred[1].dims, ElementsAre(2, 7));
}

template <class Change>
std::string WhyNot(const Change& change) {
  const RnnCase c;
  const FakeHost host;
  auto operands = Operands(c, FBX_F32, RandomOperands(c));
  FakeAttrs attrs = Attributes(c);
  change(operands, attrs);
  FakeNode node(host, KernelOfThePlugin(kOp), attrs, operands, {F32Tensor({}), F32Tensor({})});
  return Declined(host, node);
}

using Tensors = std::vector<FakeTensor>;

TEST(RnnKernel, DeclinesWhatItCannotDo) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t.pop_back(); }), "ARITY : has 4 operands, expected 5");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = FakeTensor(FBX_U8, {7, 5}); }),
            "DTYPE operand 1: is u8 beside f32 input");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = FakeTensor(FBX_I8, {7, 5}); }),
            "NONCONST operand 1: is computed; quantized weights must be constant");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[4] = FakeTensor(); }), "OPERANDS operand 4: is absent");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[4] = F32Tensor({2, 7}); }),
            "SHAPE operand 4: has 14 elements, expected 1 x 7");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[2] = F32Tensor({7, 8}); }),
            "SHAPE operand 2: dimension 1 is 8, expected 7");
  EXPECT_THAT(
      WhyNot([](Tensors&, FakeAttrs& a) { a["fused_activation_function"] = std::string("SIGN_BIT"); }),
      HasSubstr("ATTR attr fused_activation_function"));
}

}  // namespace
}  // namespace fusebox::testing
