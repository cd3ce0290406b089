// SPDX-License-Identifier: Apache-2.0
// fusebox.lstm: the LSTM's cell with activations that the builtin op cannot say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plugins/rnn/simd/lstm.h"
#include "tests/plugins/rnn/kernel_case.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;

void ExpectNear(const LstmCase& lstm, fbx_dtype dtype, double bound, uint32_t threads = 1) {
  const auto operands = RandomOperands(lstm, 7);
  EXPECT_LE(Difference(RunKernel(lstm, dtype, operands, threads), Definition(lstm, operands)), bound)
      << lstm.batch << " rows, " << lstm.cells << " cells, type " << dtype;
}

constexpr const char* kNamed[] = {
    "linear", "relu", "relu6", "tanh", "sigmoid", "hard_sigmoid", "hard_sigmoid_of_keras_3"};

TEST(OtherLstmKernel, AgreesForEveryPairOfActivations) {
  for (const char* activation : kNamed) {
    for (const char* gates : kNamed) {
      LstmCase lstm{.batch = 2, .steps = 6, .cells = 18, .activation = activation};
      lstm.gate_activation = gates;
      lstm.weight_scale = 0.2;  // gates without bounds grow
      SCOPED_TRACE(std::string(activation) + ", " + gates);
      ExpectNear(lstm, FBX_F32, 2e-6);
      ExpectNear(lstm, FBX_F64, 1e-12);
      lstm.constant_weights = false;
      ExpectNear(lstm, FBX_F32, 2e-6);
    }
  }
}

TEST(OtherLstmKernel, AgreesAtEverySizeAndInBothLayouts) {
  for (const int64_t cells : {1, 3, 4, 8, 15, 16, 17, 33, 64, 130}) {
    for (const int64_t batch : {1, 2, 7}) {
      LstmCase lstm{.batch = batch, .steps = 5, .inputs = 9, .cells = cells, .activation = "tanh"};
      lstm.gate_activation = "hard_sigmoid";
      for (const bool time_major : {false, true}) {
        lstm.time_major = time_major;
        lstm.operand_count = time_major ? 20 : 24;
        ExpectNear(lstm, FBX_F32, 1e-6, 3);
        ExpectNear(lstm, FBX_F64, 1e-13);
      }
    }
  }
}

TEST(OtherLstmKernel, AgreesInEveryVariant) {
  for (int bits = 0; bits < 32; ++bits) {
    LstmCase lstm{.batch = 2, .steps = 6, .inputs = 5, .cells = 9, .activation = "tanh"};
    lstm.gate_activation = "hard_sigmoid_of_keras_3";
    lstm.cifg = bits & 1;
    lstm.peephole = bits & 2;
    lstm.layer_norm = bits & 4;
    lstm.outputs = bits & 8 ? 4 : 0;
    lstm.diagonal = (bits & 16) && !(bits & 8);
    SCOPED_TRACE(bits);
    ExpectNear(lstm, FBX_F32, 3e-6);
    ExpectNear(lstm, FBX_F64, 1e-12);
  }
}

TEST(OtherLstmKernel, AgreesOnEveryInstructionSetOfThisMachine) {
  for (const rnn::VectorCode* code : rnn::VectorCodes()) {
    rnn::UseVectorCodeForTest(code);
    SCOPED_TRACE(std::to_string(code->lanes) + " lanes");
    for (const int64_t batch : {1, 2, 7}) {
      for (const char* gates : kNamed) {
        LstmCase lstm{.batch = batch, .steps = 4, .cells = 33, .activation = "tanh"};
        lstm.gate_activation = gates;
        lstm.weight_scale = 0.2;
        ExpectNear(lstm, FBX_F32, 2e-6);
      }
    }
  }
  rnn::UseVectorCodeForTest(nullptr);
}

TEST(OtherLstmKernel, LeavesItsStateOperandsAlone) {
  for (const bool constant_weights : {true, false}) {
    LstmCase lstm{.batch = 2, .activation = "tanh", .constant_weights = constant_weights};
    lstm.gate_activation = "hard_sigmoid";
    const auto values = RandomOperands(lstm, 4);
    const FakeHost host;
    auto operands = Operands(lstm, FBX_F32, values);
    auto results = Results(lstm, FBX_F32, operands);
    FakeNode node(host, LstmKernelOfThePlugin(lstm), Attributes(lstm), operands, std::move(results));
    RunNode(host, node);
    const std::vector<double> c(operands[19].data<float>(), operands[19].data<float>() + 14);
    EXPECT_EQ(c, values[19]);
    EXPECT_LE(Difference(ValuesOf(node.result(2), FBX_F32), Definition(lstm, values).c), 1e-6);
  }
}

TEST(OtherLstmKernel, CarriesNanAndInfinity) {
  LstmCase lstm{.batch = 1, .steps = 2, .cells = 5, .activation = "tanh"};
  lstm.gate_activation = "hard_sigmoid";
  auto values = RandomOperands(lstm, 1);
  values[0][0] = std::nan("");
  for (const double h : RunKernel(lstm, FBX_F32, values).h) EXPECT_TRUE(std::isnan(h));
  values[0][0] = 1e30;
  for (const double h : RunKernel(lstm, FBX_F32, values).h) EXPECT_LE(std::abs(h), 1);
}

TEST(OtherLstmKernel, InfersOutputAndStates) {
  LstmCase lstm{.batch = 2, .activation = "tanh"};
  lstm.gate_activation = "hard_sigmoid";
  const FakeHost host;
  auto operands = Operands(lstm, FBX_F32, RandomOperands(lstm, 1));
  operands[0] = FakeTensor(FBX_F32, {2, -1, 5});
  operands[18] = operands[19] = FakeTensor(FBX_F32, {-1, -1});
  FakeNode node(host, LstmKernelOfThePlugin(lstm), Attributes(lstm), operands,
                {F32Tensor({}), F32Tensor({}), F32Tensor({})});
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_THAT(node.inferred[0].dims, ElementsAre(2, -1, 7));
  EXPECT_THAT(node.inferred[1].dims, ElementsAre(2, 7));
  EXPECT_THAT(node.inferred[2].dims, ElementsAre(2, 7));
}

// Changes the node and says why the kernel declines it.
template <class Change>
std::string WhyNot(const Change& change, const LstmCase& lstm, size_t result_count = 3) {
  const FakeHost host;
  auto operands = Operands(lstm, FBX_F32, RandomOperands(lstm, 1));
  auto results = Results(lstm, FBX_F32, operands);
  results.resize(result_count);
  FakeAttrs attrs = Attributes(lstm);
  change(operands, attrs);
  FakeNode node(host, LstmKernelOfThePlugin(lstm), attrs, std::move(operands), std::move(results));
  return Declined(host, node);
}

using Tensors = std::vector<FakeTensor>;

TEST(OtherLstmKernel, DeclinesWhatItDoesNotDo) {
  LstmCase lstm{.activation = "tanh"};
  lstm.gate_activation = "hard_sigmoid";
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["activation"] = std::string("softsign"); }, lstm),
            "ATTR attr activation: activation softsign is not supported");
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs& a) { a["recurrent_activation"] = std::string("elu"); }, lstm),
            "ATTR attr recurrent_activation: activation elu is not supported");
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[19] = FakeTensor(); }, lstm),
            "OPERANDS operand 19: is absent");
  EXPECT_EQ(WhyNot([](Tensors&, FakeAttrs&) {}, lstm, 1), "ARITY : has 1 results, expected 1, and 2 states");
  EXPECT_EQ(WhyNot(
                [](Tensors& t, FakeAttrs&) {
                  t[0] = FakeTensor(FBX_I8, {1, 3, 5});
                  for (size_t i = 1; i < 9; ++i) t[i] = FakeTensor(FBX_I8, t[i].dims(), FBX_TENSOR_CONST);
                  for (size_t i = 12; i < 16; ++i) t[i] = FakeTensor(FBX_I32, t[i].dims(), FBX_TENSOR_CONST);
                  t[18] = FakeTensor(FBX_I8, {1, 7});
                  t[19] = FakeTensor(FBX_I16, {1, 7});
                },
                lstm),
            "DTYPE operand 0: is i8, only f32 and f64 are supported");
}

}  // namespace
}  // namespace fusebox::testing
