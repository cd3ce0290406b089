// SPDX-License-Identifier: Apache-2.0
// fusebox.conv_lstm: its f32 engine beside its f64 engine, which computes the definition element by element.
// The Keras importer's tests compare both with an independent definition (tests/testing/conv_lstm.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plugins/rnn/fake_host.h"
#include "tests/plugins/rnn/instruction_sets.h"
#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Sizes = std::vector<int64_t>;

struct ConvCase {
  Sizes in = {6, 5}, kernel = {3, 3}, recurrent = {3, 3}, strides = {1, 1}, dilations = {1, 1};
  int64_t batch = 2, steps = 3, channels = 3, cells = 5;
  bool same = true, sequence = true, backwards = false, zero_output = false;
  int mask = 0;  // dimensions
  std::string activation = "tanh", gate_activation = "sigmoid";
  double weight_scale = 0.3, input_scale = 1;
};

Sizes Join(Sizes first, const Sizes& space, const Sizes& last) {
  first.insert(first.end(), space.begin(), space.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

Sizes Out(const ConvCase& g) {
  Sizes out;
  for (size_t d = 0; d < g.in.size(); ++d) {
    const int64_t reach = (g.kernel[d] - 1) * g.dilations[d] + 1;
    out.push_back((g.same ? g.in[d] - 1 : g.in[d] - reach) / g.strides[d] + 1);
  }
  return out;
}

std::vector<Sizes> Dims(const ConvCase& g) {
  const Sizes state = Join({g.batch}, Out(g), {g.cells});
  return {Join({g.batch, g.steps}, g.in, {g.channels}),
          state,
          state,
          Join({4 * g.cells}, g.kernel, {g.channels}),
          Join({4 * g.cells}, g.recurrent, {g.cells}),
          {4 * g.cells}};
}

FakeAttrs Attributes(const ConvCase& g) {
  return {{"strides", g.strides},
          {"dilations", g.dilations},
          {"padding", std::string(g.same ? "SAME" : "VALID")},
          {"sequence", g.sequence},
          {"go_backwards", g.backwards},
          {"zero_output_for_mask", g.zero_output},
          {"activation", g.activation},
          {"recurrent_activation", g.gate_activation}};
}

using Vectors = std::vector<std::vector<double>>;

Vectors RandomOperands(const ConvCase& g) {
  return RandomVectors(Dims(g), {g.input_scale, 0.8, 0.8, g.weight_scale, g.weight_scale, 0.3}, 1);
}

FakeTensor MaskOf(const ConvCase& g) {
  Sizes dims = Join({g.batch, g.steps}, Out(g), {});
  dims.resize(static_cast<size_t>(g.mask));
  const FakeTensor shape(FBX_BOOL, dims);
  std::vector<uint8_t> values(shape.count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = i % 3 != 0;
  return FakeTensor::Of(FBX_BOOL, dims, values);
}

std::vector<FakeTensor> Operands(const ConvCase& g, fbx_dtype dtype, const Vectors& values,
                                 bool constant = true) {
  std::vector<FakeTensor> operands;
  const auto dims = Dims(g);
  for (size_t i = 0; i < dims.size(); ++i)
    operands.push_back(
        TensorOf(dtype, dims[i], values[i], i >= 3 && constant ? uint32_t{FBX_TENSOR_CONST} : 0));
  if (g.mask > 0) operands.push_back(MaskOf(g));
  return operands;
}

// The outputs and both final states.
Vectors RunConv(const ConvCase& g, fbx_dtype dtype, const std::vector<FakeTensor>& operands,
                uint32_t threads = 1) {
  const FakeHost host(threads);
  const Sizes state = Dims(g)[1];
  Sizes outputs = state;
  outputs.insert(outputs.begin() + 1, g.sequence ? g.steps : 1);
  FakeNode node(host, KernelOfThePlugin("fusebox.conv_lstm"), Attributes(g), operands,
                {EmptyTensor(dtype, outputs), EmptyTensor(dtype, state), EmptyTensor(dtype, state)});
  RunNode(host, node);
  Vectors out;
  for (const size_t i : {0u, 1u, 2u}) out.push_back(ValuesOf(node.result(i), dtype));
  return out;
}

void ExpectNear(const ConvCase& g, double tolerance, uint32_t threads = 1) {
  const Vectors values = RandomOperands(g);
  const Vectors want = RunConv(g, FBX_F64, Operands(g, FBX_F64, values)),
                is = RunConv(g, FBX_F32, Operands(g, FBX_F32, values), threads);
  for (size_t i = 0; i < 3; ++i) EXPECT_LE(Difference(is[i], want[i]), tolerance) << "result " << i;
}

const ConvCase kLine{.in = {9}, .kernel = {4}, .recurrent = {3}, .strides = {1}, .dilations = {1}};
const ConvCase kVolume{.in = {3, 4, 5},
                       .kernel = {2, 3, 2},
                       .recurrent = {3, 1, 2},
                       .strides = {1, 1, 1},
                       .dilations = {1, 1, 1}};

std::vector<ConvCase> Cases() {
  std::vector<ConvCase> out;
  for (ConvCase g : {kLine, ConvCase(), kVolume}) {
    out.push_back(g);
    g.strides.back() = 2;
    out.push_back(g);
    g.dilations.back() = 2;
    g.backwards = true;
    out.push_back(g);
    g.dilations.front() = 2;
    g.same = false;
    if (g.in.size() == 3) g.in[0] = 5;
    out.push_back(g);
    g.sequence = false;
    g.mask = 2;
    out.push_back(g);
    g.mask = static_cast<int>(g.in.size()) + 2;
    g.zero_output = true;
    out.push_back(g);
    g.sequence = true;
    out.push_back(g);
    g.zero_output = false;
    out.push_back(g);
  }
  return out;
}

TEST(ConvLstmKernel, IsItsDefinition) {
  for (const ConvCase& g : Cases()) ExpectNear(g, 2e-6);
}

TEST(ConvLstmKernel, RunsWithComputedWeights) {
  const ConvCase g{.mask = 2};
  const Vectors values = RandomOperands(g);
  const Vectors want = RunConv(g, FBX_F64, Operands(g, FBX_F64, values)),
                is = RunConv(g, FBX_F32, Operands(g, FBX_F32, values, false));
  for (size_t i = 0; i < 3; ++i) EXPECT_LE(Difference(is[i], want[i]), 2e-6);
}

TEST(ConvLstmKernel, HasEveryActivation) {
  for (const char* activation :
       {"linear", "relu", "relu6", "tanh", "sigmoid", "hard_sigmoid", "hard_sigmoid_of_keras_3"}) {
    ExpectNear({.activation = activation, .weight_scale = 0.1}, 3e-6);
    ExpectNear({.gate_activation = activation, .weight_scale = 0.1}, 3e-6);
  }
}

TEST(ConvLstmKernel, AcceptsOddSizes) {
  for (const int64_t cells : {1, 4, 8, 15, 16, 17, 33, 65})
    for (const int64_t channels : {1, 2, 16})
      ExpectNear({.channels = channels, .cells = cells, .weight_scale = 0.1}, 3e-6);
  for (const Sizes& in : {Sizes{1, 1}, Sizes{1, 700}, Sizes{3, 300}, Sizes{40, 2}, Sizes{2, 3}})
    ExpectNear({.in = in, .cells = 17, .weight_scale = 0.1}, 3e-6);
  ExpectNear({.kernel = {7, 6}, .recurrent = {5, 4}, .weight_scale = 0.1}, 3e-6);
  for (const bool sequence : {true, false}) {
    ExpectNear({.steps = 0, .sequence = sequence}, 0);
    ExpectNear({.batch = 0, .sequence = sequence}, 0);
    ExpectNear({.in = {0, 4}, .sequence = sequence}, 0);
    ExpectNear({.steps = 1, .sequence = sequence}, 2e-6);
  }
}

TEST(ConvLstmKernel, ComputesTheSameBitsForAnyNumberOfThreads) {
  for (const ConvCase& g : {ConvCase{.in = {20, 30}, .channels = 8, .cells = 24, .mask = 4},
                            ConvCase{.in = {40, 40}, .batch = 1, .channels = 8, .cells = 24}}) {
    const auto operands = Operands(g, FBX_F32, RandomOperands(g));
    const Vectors one = RunConv(g, FBX_F32, operands);
    EXPECT_EQ(one, RunConv(g, FBX_F32, operands, 2));
    EXPECT_EQ(one, RunConv(g, FBX_F32, operands, 5));
  }
}

TEST(ConvLstmKernel, AgreesOnEveryInstructionSet) {
  OnEveryInstructionSet([&] {
    for (const ConvCase& g : Cases()) ExpectNear(g, 2e-6);
    ExpectNear({.in = {12, 12}, .cells = 33, .weight_scale = 0.1}, 3e-6);
  });
}

// Kernels of Winograd's minimal filtering, alone and beside others, on sizes that are no multiple of a block.
TEST(ConvLstmKernel, FiltersKernelsOfManySizes) {
  std::vector<ConvCase> cases;
  const std::vector<Sizes> kernels = {{3, 3}, {5, 5}, {1, 3}, {1, 5}, {1, 1}, {5, 3}};
  for (const Sizes& kernel : kernels)
    for (const Sizes& recurrent : kernels)
      cases.push_back({.in = {7, 9},
                       .kernel = kernel,
                       .recurrent = recurrent,
                       .channels = 9,
                       .cells = 10,
                       .weight_scale = 0.05});
  for (const int64_t size : {1, 2, 3, 4, 5, 6, 11, 130})
    for (const int64_t kernel : {3, 5})
      cases.push_back({.in = {size},
                       .kernel = {kernel},
                       .recurrent = {kernel},
                       .strides = {1},
                       .dilations = {1},
                       .channels = 8,
                       .cells = 33,
                       .weight_scale = 0.1});
  ConvCase volume = kVolume;
  volume.kernel = volume.recurrent = {2, 5, 5};
  volume.cells = 9;
  volume.weight_scale = 0.05;
  cases.push_back(volume);
  OnEveryInstructionSet([&] {
    for (const ConvCase& g : cases) {
      SCOPED_TRACE("kernel " + ::testing::PrintToString(g.kernel) + " and " +
                   ::testing::PrintToString(g.recurrent) + " on " + ::testing::PrintToString(g.in));
      ExpectNear(g, 3e-6);
    }
  });
}

TEST(ConvLstmKernel, FiltersInputsOfAnySize) {
  for (const Sizes& kernel : {Sizes{3, 3}, Sizes{5, 5}, Sizes{1, 5}}) {
    ConvCase g{.kernel = kernel, .recurrent = kernel, .channels = 8, .cells = 12, .weight_scale = 0.05};
    for (const auto& [scale, tolerance] :
         {std::pair(1e-3, 3e-6), std::pair(7.0, 1e-5), std::pair(60.0, 4e-5), std::pair(1e3, 4e-5)}) {
      SCOPED_TRACE(scale);
      g.input_scale = scale;
      ExpectNear(g, tolerance);
    }
    g.input_scale = 1;
    g.activation = "relu";
    ExpectNear(g, 3e-6);
    const auto operands = Operands(g, FBX_F32, RandomOperands(g));
    EXPECT_EQ(RunConv(g, FBX_F32, operands), RunConv(g, FBX_F32, operands, 3));
  }
}

TEST(ConvLstmKernel, LetsNaNThroughToItsNeighborsOnly) {
  const ConvCase g{.in = {8, 8}, .steps = 1};
  Vectors values = RandomOperands(g);
  values[0][0] = std::nan("");
  const Vectors is = RunConv(g, FBX_F32, Operands(g, FBX_F32, values)),
                want = RunConv(g, FBX_F64, Operands(g, FBX_F64, values));
  for (size_t i = 0; i < is[1].size(); ++i) EXPECT_EQ(std::isnan(is[1][i]), std::isnan(want[1][i])) << i;
}

TEST(ConvLstmKernel, SaturatesWithLargeInputs) {
  for (const double scale : {1e3, 1e30}) ExpectNear({.steps = 1, .input_scale = scale}, 1e-4);
}

// i8 weights are what they stand for.
TEST(ConvLstmKernel, WidensWeightsOf8Bits) {
  const ConvCase g;
  Vectors values = RandomOperands(g);
  auto stored = Operands(g, FBX_F32, values);
  const auto dims = Dims(g);
  for (const size_t i : {3u, 4u}) {
    constexpr float kScale = 0.0025F;
    std::vector<int8_t> steps;
    for (double& value : values[i]) {
      steps.push_back(static_cast<int8_t>(std::lround(value / 0.0025)));
      value = static_cast<double>(kScale * static_cast<float>(steps.back()));
    }
    stored[i] = FakeTensor::Of(FBX_I8, dims[i], steps, FBX_TENSOR_CONST).Quantized(kScale);
  }
  EXPECT_EQ(RunConv(g, FBX_F32, stored), RunConv(g, FBX_F32, Operands(g, FBX_F32, values)));
}

TEST(ConvLstmKernel, InfersOutputsAndStates) {
  const ConvCase g{.in = {7, 6}, .strides = {2, 1}, .same = false};
  const FakeHost host;
  auto operands = Operands(g, FBX_F32, RandomOperands(g));
  operands[0] = FakeTensor(FBX_F32, {-1, -1, 7, 6, 3});
  for (const size_t state : {1u, 2u}) operands[state] = FakeTensor(FBX_F32, {-1, -1, -1, -1});
  FakeNode node(host, KernelOfThePlugin("fusebox.conv_lstm"), Attributes(g), operands,
                {F32Tensor({}), F32Tensor({}), F32Tensor({})});
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_THAT(node.inferred[0].dims, ElementsAre(-1, -1, 3, 4, 5));
  EXPECT_THAT(node.inferred[1].dims, ElementsAre(-1, 3, 4, 5));
  EXPECT_THAT(node.inferred[2].dims, ElementsAre(-1, 3, 4, 5));
}

// Changes the node; returns why the kernel declines it.
template <class Change>
std::string WhyNot(const Change& change) {
  const ConvCase g{.mask = 2};
  const FakeHost host;
  auto operands = Operands(g, FBX_F32, RandomOperands(g));
  FakeAttrs attrs = Attributes(g);
  change(operands, attrs);
  FakeNode node(host, KernelOfThePlugin("fusebox.conv_lstm"), attrs, operands,
                {F32Tensor({}), F32Tensor({}), F32Tensor({})});
  return Declined(host, node);
}

using Tensors = std::vector<FakeTensor>;

TEST(ConvLstmKernel, DeclinesOtherNodes) {
  const auto shape = [](size_t i, const Sizes& dims) {
    return WhyNot([=](Tensors& t, FakeAttrs&) { t[i] = FakeTensor(i == 6 ? FBX_BOOL : FBX_F32, dims); });
  };
  const auto option = [](const char* key, const FakeAttrs::mapped_type& value) {
    return WhyNot([=](Tensors&, FakeAttrs& a) { a[key] = value; });
  };
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t.resize(5); }), "ARITY : has 5 operands, expected 7");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[2] = FakeTensor(); }), "OPERANDS operand 2: is absent");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[0] = FakeTensor(FBX_I8, {2, 3, 6, 5, 3}); }),
            "DTYPE operand 0: is i8, only f32 and f64 are supported");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[6] = F32Tensor({2, 3}); }),
            "DTYPE operand 6: is f32 beside bool input");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) {
              t[4] = FakeTensor(FBX_I8, {20, 3, 3, 5}, FBX_TENSOR_CONST).Allocate(1).Quantized(1);
            }),
            "DTYPE operand 4: is not of the type of the input weights");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[3] = FakeTensor(FBX_I8, {20, 3, 3, 3}).Quantized(1); }),
            "NONCONST operand 3: is computed; quantized weights must be constant");
  EXPECT_EQ(shape(0, {2, 3, 6, 5}), "RANK operand 0: has rank 4, expected 5");
  EXPECT_EQ(shape(0, {2, 3, 6, 5, 4}), "SHAPE operand 0: dimension 4 is 4, expected 3");
  EXPECT_EQ(shape(1, {2, 6, 4, 5}), "SHAPE operand 1: dimension 2 is 4, expected 5");
  EXPECT_EQ(shape(2, {1, 6, 5, 5}), "SHAPE operand 2: dimension 0 is 1, expected 2");
  EXPECT_EQ(shape(3, {20, 3}), "RANK operand 3: has rank 2, expected 3 to 5");
  EXPECT_EQ(shape(3, {20, 3, 0, 3}), "SHAPE operand 3: has a kernel of the size 0");
  EXPECT_EQ(shape(4, {24, 3, 3, 5}), "SHAPE operand 4: dimension 0 is 24, expected 20");
  EXPECT_EQ(shape(5, {19}), "SHAPE operand 5: dimension 0 is 19, expected a multiple of 4");
  EXPECT_EQ(shape(6, {2, 3, 6}), "RANK operand 6: has rank 3, expected 2 or 4");
  EXPECT_EQ(shape(6, {2, 3, 6, 4}), "SHAPE operand 6: has the size 4 beside a state of 5");
  EXPECT_EQ(option("strides", Sizes{1}), "ATTR attr strides: has 1 numbers, expected 2");
  EXPECT_EQ(option("dilations", Sizes{1, 0}), "ATTR attr dilations: has the number 0");
  EXPECT_EQ(option("padding", std::string("CAUSAL")), "ATTR attr padding: is CAUSAL, expected SAME or VALID");
  EXPECT_THAT(option("activation", std::string("elu")), HasSubstr("ATTR attr activation"));
}

// The padded inputs of such a node do not fit into any memory.
TEST(ConvLstmKernel, RefusesPaddingBeyondMemory) {
  const ConvCase g{.dilations = {int64_t{1} << 30, int64_t{1} << 30}};
  EXPECT_THROW(RunConv(g, FBX_F32, Operands(g, FBX_F32, RandomOperands(g))), std::runtime_error);
}

}  // namespace
}  // namespace fusebox::testing
