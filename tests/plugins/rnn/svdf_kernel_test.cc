// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

constexpr char kOp[] = "SVDF";

struct SvdfCase {
  int64_t batch = 1, inputs = 5, units = 4, rank = 1, memory = 3;
  std::string activation = "NONE";
  bool bias = true;

  int64_t filters() const { return units * rank; }
  std::vector<std::vector<int64_t>> Dims() const {
    return {{batch, inputs}, {filters(), inputs}, {filters(), memory}, {units}, {batch, filters() * memory}};
  }
};

using Vectors = std::vector<std::vector<double>>;

double Act(const std::string& name, double x) {
  if (name == "TANH") return std::tanh(x);
  if (name == "NONE") return x;
  if (name == "RELU_N1_TO_1") return std::clamp(x, -1.0, 1.0);
  return std::min(std::max(x, 0.0), name == "RELU6" ? 6.0 : 1e300);
}

// One call. The state is a queue per filter, kept as steps of the whole batch: state[i] has the features of i
// steps ago.
struct Definition {
  SvdfCase c;
  Vectors in;
  std::vector<std::vector<double>> steps;

  std::vector<double> Call(const std::vector<double>& x) {
    const auto n = static_cast<size_t>(c.inputs), filters = static_cast<size_t>(c.filters());
    const auto m = static_cast<size_t>(c.memory), rank = static_cast<size_t>(c.rank);
    std::vector<double> features(static_cast<size_t>(c.batch) * filters);
    for (size_t i = 0; i < features.size(); ++i) {
      for (size_t k = 0; k < n; ++k) features[i] += in[1][i % filters * n + k] * x[i / filters * n + k];
    }
    steps.insert(steps.begin(), features);
    std::vector<double> out;
    for (size_t row = 0; row < static_cast<size_t>(c.batch); ++row) {
      for (size_t unit = 0; unit < filters / rank; ++unit) {
        double sum = c.bias ? in[3][unit] : 0;
        for (size_t f = unit * rank; f < (unit + 1) * rank; ++f) {
          for (size_t age = 0; age < m && age < steps.size(); ++age)
            sum += in[2][f * m + (m - 1 - age)] * steps[age][row * filters + f];
        }
        out.push_back(Act(c.activation, sum));
      }
    }
    return out;
  }
};

std::vector<FakeTensor> Operands(const SvdfCase& c, fbx_dtype dtype, const Vectors& values) {
  std::vector<FakeTensor> operands;
  const auto dims = c.Dims();
  for (size_t i = 0; i < dims.size(); ++i)
    operands.push_back(
        TensorOf(dtype, dims[i], values[i], i >= 1 && i <= 3 ? uint32_t{FBX_TENSOR_CONST} : 0));
  if (!c.bias) operands[3] = FakeTensor();
  return operands;
}

FakeAttrs Attributes(const SvdfCase& c) {
  return {{"rank", c.rank}, {"fused_activation_function", c.activation}};
}

// Seven calls from a state of zeros.
void ExpectDefinition(const SvdfCase& c, fbx_dtype dtype, double tolerance) {
  const auto dims = c.Dims();
  Vectors values = RandomVectors(dims, {1, 0.5, 0.5, 0.3, 0}, 1);
  const FakeHost host;
  auto operands = Operands(c, dtype, values);
  FakeTensor state = EmptyTensor(dtype, dims[4]);
  state.ShareMemoryOf(operands[4]);
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(c), operands,
                {EmptyTensor(dtype, {c.batch, c.units}), state});
  Definition definition{c, values, {}};
  for (uint32_t call = 0; call < 7; ++call) {
    const std::vector<double> x = RandomVectors({dims[0]}, {1}, 10 + call)[0];
    if (dtype == FBX_F64) std::copy(x.begin(), x.end(), node.operand(0).data<double>());
    else std::copy(x.begin(), x.end(), node.operand(0).data<float>());
    RunNode(host, node);
    EXPECT_LE(Difference(ValuesOf(node.result(0), dtype), definition.Call(x)), tolerance) << "call " << call;
  }
}

TEST(SvdfKernel, IsItsDefinitionOverCalls) {
  for (const char* activation : {"NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH"}) {
    for (const int64_t rank : {1, 2, 3}) {
      ExpectDefinition({.batch = 2, .rank = rank, .activation = activation}, FBX_F32, 2e-6);
      ExpectDefinition({.batch = 2, .rank = rank, .activation = activation}, FBX_F64, 1e-13);
    }
  }
  ExpectDefinition({.bias = false}, FBX_F32, 2e-6);
  ExpectDefinition({.memory = 1}, FBX_F32, 2e-6);
  ExpectDefinition({.memory = 12}, FBX_F32, 2e-6);
  ExpectDefinition({.batch = 0}, FBX_F32, 0);
}

// What the stored numbers of `count` elements mean, from a seed; a tensor of them.
template <class T>
FakeTensor Stored(fbx_dtype dtype, std::vector<int64_t> dims, float scale, int64_t zero, int most,
                  uint32_t seed, std::vector<double>& meaning) {
  meaning.clear();
  std::vector<T> stored;
  const Vectors random = RandomVectors({dims}, {1}, seed);
  for (const double x : random[0]) {
    stored.push_back(static_cast<T>(std::lround(x * most)));
    meaning.push_back(scale * static_cast<double>(stored.back() - zero));
  }
  FakeTensor tensor = FakeTensor::Of<T>(dtype, dims, stored, FBX_TENSOR_CONST);
  return tensor.Quantized(scale, zero);
}

// State and times of 16 bits, and of 8 with a zero point.
template <class T>
void ExpectNearReals(fbx_dtype dtype, float state_scale, int64_t state_zero, float times_scale,
                     double tolerance) {
  const SvdfCase c{.batch = 2, .rank = 2, .activation = "RELU", .bias = false};
  const auto dims = c.Dims();
  Definition definition{c, Vectors(5), {}};
  const int most = std::numeric_limits<T>::max();
  auto features = Stored<int8_t>(FBX_I8, dims[1], 0.004F, 0, 127, 1, definition.in[1]);
  auto times = Stored<T>(dtype, dims[2], times_scale, 0, most, 2, definition.in[2]);
  FakeTensor state = FakeTensor::Of<T>(
      dtype, dims[4],
      std::vector<T>(static_cast<size_t>(dims[4][0] * dims[4][1]), static_cast<T>(state_zero)));
  state.Quantized(state_scale, state_zero);
  const FakeHost host;
  FakeTensor out = FakeTensor(FBX_I8, {c.batch, c.units}).Allocate(1).Quantized(0.02F, -128);
  FakeTensor input = FakeTensor(FBX_I8, dims[0]).Allocate(1).Quantized(0.02F, 5);
  FakeTensor after = FakeTensor(dtype, dims[4]).ShareMemoryOf(state).Quantized(state_scale, state_zero);
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(c), {input, features, times, FakeTensor(), state},
                {out, after});
  for (uint32_t call = 0; call < 7; ++call) {
    std::vector<double> x;
    const FakeTensor values = Stored<int8_t>(FBX_I8, dims[0], 0.02F, 5, 127, 10 + call, x);
    std::copy_n(values.data<int8_t>(), values.count(), node.operand(0).data<int8_t>());
    RunNode(host, node);
    const std::vector<double> expected = definition.Call(x);
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(0.02 * (node.result(0).data<int8_t>()[i] + 128), std::min(expected[i], 5.1), tolerance)
          << "call " << call << ", " << i;
  }
}

TEST(SvdfKernel, IsNearRealNumbersInIntegers) {
  ExpectNearReals<int16_t>(FBX_I16, 0.0002F, 0, 0.00003F, 0.011);
  ExpectNearReals<int8_t>(FBX_I8, 0.03F, -9, 0.004F, 0.1);
}

TEST(SvdfKernel, InfersUnits) {
  const SvdfCase c{.units = 4, .rank = 2};
  const FakeHost host;
  auto operands = Operands(c, FBX_F32, RandomVectors(c.Dims(), {1, 1, 1, 1, 0}, 1));
  operands[0] = F32Tensor({-1, 5});
  FakeNode node(host, KernelOfThePlugin(kOp), Attributes(c), operands, {F32Tensor({}), F32Tensor({})});
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_EQ(node.inferred[0].dims, (std::vector<int64_t>{-1, 4}));
  EXPECT_EQ(node.inferred[1].dims, (std::vector<int64_t>{1, 24}));
}

using Tensors = std::vector<FakeTensor>;

template <class Change>
std::string WhyNot(const Change& change) {
  const SvdfCase c;
  const FakeHost host;
  auto operands = Operands(c, FBX_F32, RandomVectors(c.Dims(), {1, 1, 1, 1, 0}, 1));
  FakeAttrs attrs = Attributes(c);
  change(operands, attrs);
  FakeTensor out = F32Tensor({});
  if (operands[0].abi()->dtype == FBX_I8) out = FakeTensor(FBX_I8, {}).Quantized(0.1F, -128);
  FakeNode node(host, KernelOfThePlugin(kOp), attrs, operands, {out, F32Tensor({})});
  return Declined(host, node);
}

FakeTensor Weights(fbx_dtype dtype, std::vector<int64_t> dims, size_t size) {
  return FakeTensor(dtype, std::move(dims), FBX_TENSOR_CONST).Allocate(size).Quantized(0.01F);
}

void ToIntegers(Tensors& t) {
  t[0] = FakeTensor(FBX_I8, {1, 5}).Quantized(0.1F, 3);
  t[1] = Weights(FBX_I8, {4, 5}, 1);
  t[2] = Weights(FBX_I16, {4, 3}, 2);
  t[3] = FakeTensor(FBX_I32, {4}, FBX_TENSOR_CONST).Allocate(4);
  t[4] = FakeTensor(FBX_I16, {1, 12}).Quantized(0.01F);
}

TEST(SvdfKernel, DeclinesWhatItCannotDo) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t.pop_back(); }), "ARITY : has 4 operands, expected 5");
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["rank"] = int64_t{0}; }), "ATTR attr rank: is 0");
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["rank"] = int64_t{3}; }),
            "SHAPE operand 1: dimension 0 is 4, which is not a multiple of the rank 3");
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["fused_activation_function"] = std::string("SIGN_BIT"); }),
            "ATTR attr fused_activation_function: activation SIGN_BIT is not supported");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = FakeTensor(FBX_U8, {4, 5}); }),
            "DTYPE operand 1: is u8 beside f32 input");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = Weights(FBX_I8, {4, 5}, 1); }),
            "DTYPE operand 2: is f32 beside i8 input");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[2] = F32Tensor({5, 3}); }),
            "SHAPE operand 2: dimension 0 is 5, expected 4");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[2] = F32Tensor({4, 0}); }),
            "SHAPE operand 2: has no steps");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[4] = FakeTensor(); }), "OPERANDS operand 4: is absent");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[4] = F32Tensor({1, 13}); }),
            "SHAPE operand 4: has 13 elements, expected 1 x 4 x 3");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[0] = FakeTensor(FBX_I32, {1, 5}); }),
            "DTYPE operand 0: is i32, only f32 and f64 are supported");
}

TEST(SvdfKernel, DeclinesIntegersThatDoNotFitTogether) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { ToIntegers(t); }), "status 0");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) {
              ToIntegers(t);
              t[2] = F32Tensor({4, 3});
            }),
            "DTYPE operand 2: is f32, only i16 and i8 are supported");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) {
              ToIntegers(t);
              t[4] = FakeTensor(FBX_I8, {1, 12}).Quantized(0.01F);
            }),
            "DTYPE operand 4: is i8, expected i16");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) {
              ToIntegers(t);
              t[4] = FakeTensor(FBX_I16, {1, 12});
            }),
            "QUANT operand 4: has no single scale");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs& a) {
              ToIntegers(t);
              a["fused_activation_function"] = std::string("TANH");
            }),
            "ATTR attr fused_activation_function: only NONE and RELU are supported in integer arithmetic");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) {
              ToIntegers(t);
              t[1] = FakeTensor(FBX_I8, {4, 5}).Quantized(0.01F);
            }),
            "NONCONST operand 1: is computed; quantized weights must be constant");
}

}  // namespace
}  // namespace fusebox::testing
