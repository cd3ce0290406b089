// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/plugins/rnn/fake_host.h"
#include "tests/plugins/rnn/instruction_sets.h"
#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct GruCase {
  int64_t batch = 1, steps = 3, inputs = 5, cells = 7;
  bool time_major = false, reset_after = true;
  std::string activation = "tanh", gate_activation = "sigmoid";
  bool constant_weights = true;
  double weight_scale = 0.4, input_scale = 1;
};

using Vectors = std::vector<std::vector<double>>;

std::vector<std::vector<int64_t>> Dims(const GruCase& g) {
  std::vector<std::vector<int64_t>> dims{
      {g.batch, g.steps, g.inputs}, {g.batch, g.cells}, {3 * g.cells, g.inputs},
      {3 * g.cells, g.cells},       {3 * g.cells},      {3 * g.cells}};
  if (g.time_major) std::swap(dims[0][0], dims[0][1]);
  if (!g.reset_after) dims.pop_back();
  return dims;
}

Vectors RandomOperands(const GruCase& g, uint32_t seed) {
  return RandomVectors(Dims(g), {g.input_scale, 0.5, g.weight_scale, g.weight_scale, 0.3, 0.3}, seed);
}

double Act(const std::string& name, double x) {
  if (name == "tanh") return std::tanh(x);
  if (name == "sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "linear") return x;
  if (name == "hard_sigmoid") return std::clamp(x / 5 + 0.5, 0.0, 1.0);
  if (name == "hard_sigmoid_of_keras_3") return std::clamp(x / 6 + 0.5, 0.0, 1.0);
  return std::min(std::max(x, 0.0), name == "relu6" ? 6.0 : 1e300);
}

// The definition of the op, gate by gate.
struct GruResult {
  std::vector<double> output, h;
};
GruResult Definition(const GruCase& g, const Vectors& in) {
  const auto n = static_cast<size_t>(g.inputs), u = static_cast<size_t>(g.cells);
  GruResult result{std::vector<double>(static_cast<size_t>(g.batch * g.steps) * u), in[1]};
  for (size_t row = 0; row < static_cast<size_t>(g.batch); ++row) {
    for (size_t t = 0; t < static_cast<size_t>(g.steps); ++t) {
      const size_t at =
          g.time_major ? t * static_cast<size_t>(g.batch) + row : row * static_cast<size_t>(g.steps) + t;
      const double* x = in[0].data() + at * n;
      const std::vector<double> h(result.h.begin() + static_cast<ptrdiff_t>(row * u),
                                  result.h.begin() + static_cast<ptrdiff_t>(row * u + u));
      const auto share_of_x = [&](size_t gate, size_t cell) {
        double sum = in[4][gate * u + cell];
        for (size_t k = 0; k < n; ++k) sum += in[2][(gate * u + cell) * n + k] * x[k];
        return sum;
      };
      const auto share_of = [&](const std::vector<double>& state, size_t gate, size_t cell) {
        double sum = g.reset_after ? in[5][gate * u + cell] : 0;
        for (size_t k = 0; k < u; ++k) sum += in[3][(gate * u + cell) * u + k] * state[k];
        return sum;
      };
      std::vector<double> r(u), masked(u);
      for (size_t i = 0; i < u; ++i) {
        r[i] = Act(g.gate_activation, share_of_x(1, i) + share_of(h, 1, i));
        masked[i] = r[i] * h[i];
      }
      for (size_t i = 0; i < u; ++i) {
        const double z = Act(g.gate_activation, share_of_x(0, i) + share_of(h, 0, i));
        const double recurrent = g.reset_after ? r[i] * share_of(h, 2, i) : share_of(masked, 2, i);
        const double candidate = Act(g.activation, share_of_x(2, i) + recurrent);
        result.output[at * u + i] = result.h[row * u + i] = z * h[i] + (1 - z) * candidate;
      }
    }
  }
  return result;
}

FakeAttrs Attributes(const GruCase& g) {
  return {{"time_major", g.time_major},
          {"reset_after", g.reset_after},
          {"activation", g.activation},
          {"recurrent_activation", g.gate_activation}};
}

std::vector<FakeTensor> Operands(const GruCase& g, fbx_dtype dtype, const Vectors& values) {
  std::vector<FakeTensor> operands;
  const auto dims = Dims(g);
  for (size_t i = 0; i < dims.size(); ++i)
    operands.push_back(
        TensorOf(dtype, dims[i], values[i], i >= 2 && g.constant_weights ? uint32_t{FBX_TENSOR_CONST} : 0));
  operands.resize(6);
  return operands;
}

GruResult RunGru(const GruCase& g, fbx_dtype dtype, const Vectors& values, uint32_t threads = 1) {
  const FakeHost host(threads);
  const auto dims = Dims(g);
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), Attributes(g), Operands(g, dtype, values),
                {EmptyTensor(dtype, {dims[0][0], dims[0][1], g.cells}), EmptyTensor(dtype, dims[1])});
  RunNode(host, node);
  return {ValuesOf(node.result(0), dtype), ValuesOf(node.result(1), dtype)};
}

void ExpectNear(const GruCase& g, fbx_dtype dtype, double tolerance, uint32_t threads = 1) {
  const Vectors values = RandomOperands(g, 1);
  const GruResult expected = Definition(g, values), is = RunGru(g, dtype, values, threads);
  EXPECT_LE(Difference(is.output, expected.output), tolerance);
  EXPECT_LE(Difference(is.h, expected.h), tolerance);
}

TEST(GruKernel, IsItsDefinitionInBothForms) {
  for (const bool reset_after : {true, false}) {
    for (const bool time_major : {true, false}) {
      const GruCase g{.batch = 3, .steps = 4, .time_major = time_major, .reset_after = reset_after};
      ExpectNear(g, FBX_F32, 1e-6);
      ExpectNear(g, FBX_F64, 1e-13);
      GruCase computed = g;
      computed.constant_weights = false;
      ExpectNear(computed, FBX_F32, 1e-6);
    }
  }
}

TEST(GruKernel, HasEveryActivation) {
  for (const char* activation :
       {"linear", "relu", "relu6", "tanh", "sigmoid", "hard_sigmoid", "hard_sigmoid_of_keras_3"}) {
    for (const fbx_dtype dtype : {FBX_F32, FBX_F64}) {
      const double tolerance = dtype == FBX_F32 ? 2e-6 : 1e-13;
      ExpectNear({.batch = 2, .activation = activation}, dtype, tolerance);
      ExpectNear({.batch = 2, .reset_after = false, .gate_activation = activation}, dtype, tolerance);
    }
  }
}

TEST(GruKernel, TakesOddSizes) {
  for (const int64_t cells : {1, 4, 8, 15, 16, 17, 33, 130}) {
    for (const int64_t batch : {1, 2, 5, 7}) {
      for (const bool reset_after : {true, false})
        ExpectNear(
            {.batch = batch, .inputs = 2, .cells = cells, .reset_after = reset_after, .weight_scale = 0.2},
            FBX_F32, 1e-6);
    }
  }
  ExpectNear({.batch = 2, .inputs = 2500, .cells = 3, .weight_scale = 0.05}, FBX_F32, 5e-6);
  ExpectNear({.steps = 0}, FBX_F32, 0);
}

TEST(GruKernel, SplitsLongSequencesIntoChunks) {
  ExpectNear({.batch = 3, .steps = 3000, .inputs = 2, .cells = 40}, FBX_F32, 5e-6);
  ExpectNear({.batch = 3, .steps = 3000, .inputs = 2, .cells = 40, .time_major = true}, FBX_F32, 5e-6);
}

TEST(GruKernel, HasScratchForEachPartOfABatchThatIsSmallerThanThePool) {
  GruCase g{.batch = 2, .steps = 3};
  g.constant_weights = false;
  ExpectNear(g, FBX_F32, 1e-6, 5);
  ExpectNear(g, FBX_F64, 1e-13, 5);
}

TEST(GruKernel, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t batch : {1, 8}) {
    for (const bool reset_after : {true, false}) {
      const GruCase g{.batch = batch, .steps = 3, .inputs = 64, .cells = 320, .reset_after = reset_after};
      const Vectors values = RandomOperands(g, 2);
      const GruResult one = RunGru(g, FBX_F32, values, 1), four = RunGru(g, FBX_F32, values, 4);
      EXPECT_EQ(one.output, four.output);
      EXPECT_EQ(one.h, four.h);
    }
  }
}

TEST(GruKernel, AgreesOnEveryInstructionSet) {
  OnEveryInstructionSet([&] {
    for (const int64_t batch : {1, 2, 7}) {
      for (const bool reset_after : {true, false})
        ExpectNear({.batch = batch, .cells = 33, .reset_after = reset_after, .weight_scale = 0.2}, FBX_F32,
                   1e-6);
    }
  });
}

TEST(GruKernel, LetsNaNThroughAndSaturates) {
  GruCase g{.input_scale = 1e6};
  ExpectNear(g, FBX_F32, 1e-6);
  Vectors values = RandomOperands(g, 1);
  values[0][0] = std::nan("");
  EXPECT_TRUE(std::isnan(RunGru(g, FBX_F32, values).h[0]));
}

TEST(GruKernel, InfersSequenceAndState) {
  const GruCase g{.batch = 2};
  const FakeHost host;
  auto operands = Operands(g, FBX_F32, RandomOperands(g, 1));
  operands[0] = FakeTensor(FBX_F32, {-1, -1, 5});
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), Attributes(g), operands,
                {F32Tensor({}), F32Tensor({})});
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_THAT(node.inferred[0].dims, ElementsAre(2, -1, 7));
  EXPECT_THAT(node.inferred[1].dims, ElementsAre(2, 7));
}

// Changes the node and says why the kernel declines it.
template <class Change>
std::string WhyNot(const Change& change) {
  const GruCase g;
  const FakeHost host;
  auto operands = Operands(g, FBX_F32, RandomOperands(g, 1));
  FakeAttrs attrs = Attributes(g);
  change(operands, attrs);
  FakeNode node(host, KernelOfThePlugin("fusebox.gru"), attrs, operands, {F32Tensor({}), F32Tensor({})});
  return Declined(host, node);
}

using Tensors = std::vector<FakeTensor>;

TEST(GruKernel, DeclinesOtherTypes) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[0] = FakeTensor(FBX_I16, {1, 3, 5}); }),
            "DTYPE operand 0: is i16, only f32, f64 and i8 are supported");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[3] = FakeTensor(FBX_I8, {21, 7}); }),
            "DTYPE operand 3: is i8 beside f32 input");
}

TEST(GruKernel, DeclinesOtherActivations) {
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["activation"] = std::string("elu"); }),
            "ATTR attr activation: activation elu is not supported");
  EXPECT_THAT(WhyNot([](Tensors&, FakeAttrs& a) { a["recurrent_activation"] = std::string("elu"); }),
              HasSubstr("ATTR attr recurrent_activation"));
}

TEST(GruKernel, DeclinesWrongOperands) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t.pop_back(); }), "ARITY : has 5 operands, expected 6");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[5] = FakeTensor(); }), "OPERANDS operand 5: is absent");
  EXPECT_THAT(WhyNot([](Tensors&, FakeAttrs& a) { a["reset_after"] = false; }),
              HasSubstr("OPERANDS operand 5: is present"));
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = FakeTensor(); }), "OPERANDS operand 1: is absent");
}

TEST(GruKernel, DeclinesSizesThatDoNotFit) {
  const auto shape = [](size_t i, std::vector<int64_t> dims) {
    return WhyNot([=](Tensors& t, FakeAttrs&) { t[i] = F32Tensor(dims); });
  };
  EXPECT_EQ(shape(0, {3, 5}), "RANK operand 0: has rank 2, expected 3");
  EXPECT_EQ(shape(1, {2, 7}), "SHAPE operand 1: dimension 0 is 2, expected 1");
  EXPECT_EQ(shape(2, {21, 4}), "SHAPE operand 2: dimension 1 is 4, expected 5");
  EXPECT_EQ(shape(2, {24, 5}), "SHAPE operand 2: dimension 0 is 24, expected 21");
  EXPECT_EQ(shape(3, {20, 7}), "SHAPE operand 3: dimension 0 is 20, expected 21");
  EXPECT_EQ(shape(4, {20}), "SHAPE operand 4: dimension 0 is 20, expected 21");
}

}  // namespace
}  // namespace fusebox::testing
