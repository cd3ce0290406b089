// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plugins/rnn/simd/lstm.h"
#include "tests/plugins/rnn/lstm_case.h"

namespace fusebox::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Text(const LstmCase& l) {
  return "B=" + std::to_string(l.batch) + " T=" + std::to_string(l.steps) + " n=" + std::to_string(l.inputs) +
         " cells=" + std::to_string(l.cells) + (l.time_major ? " time major" : "");
}

void ExpectNear(const LstmCase& lstm, fbx_dtype dtype, double bound, uint32_t threads = 1) {
  const auto operands = RandomOperands(lstm, 7);
  EXPECT_LE(Difference(RunKernel(lstm, dtype, operands, threads), Definition(lstm, operands)), bound)
      << Text(lstm) << " type " << dtype << " threads " << threads;
}

TEST(LstmKernel, AgreesWithItsDefinitionAtEverySize) {
  for (const int64_t cells : {1, 3, 4, 8, 15, 16, 17, 31, 33, 48, 63, 64, 100}) {
    for (const int64_t inputs : {1, 2, 16, 37}) {
      for (const int64_t batch : {1, 2, 3, 8}) {
        ExpectNear({.batch = batch, .steps = 5, .inputs = inputs, .cells = cells}, FBX_F32, 1e-6);
      }
    }
  }
}

TEST(LstmKernel, AgreesInBothLayouts) {
  for (const bool time_major : {false, true}) {
    for (const int64_t batch : {1, 2, 5, 7, 13}) {
      const LstmCase lstm{.batch = batch, .steps = 6, .inputs = 9, .cells = 20, .time_major = time_major};
      ExpectNear(lstm, FBX_F32, 1e-6);
      ExpectNear(lstm, FBX_F64, 1e-13);
    }
  }
}

TEST(LstmKernel, StaysExactOverALongSequence) {
  ExpectNear({.steps = 500, .inputs = 40, .cells = 130}, FBX_F32, 1e-6);
}

TEST(LstmKernel, SplitsALongProjectionIntoChunks) {
  ExpectNear({.batch = 5, .steps = 900, .inputs = 3, .cells = 64}, FBX_F32, 1e-6);
}

TEST(LstmKernel, SumsMoreColumnsThanItHoldsAtOnce) {
  ExpectNear({.steps = 3, .inputs = 2500, .cells = 17}, FBX_F32, 2e-6);
}

TEST(LstmKernel, LeavesTheStatesAloneWithoutSteps) {
  for (const fbx_dtype dtype : {FBX_F32, FBX_F64}) {
    const LstmCase lstm{.batch = 2, .steps = 0};
    const auto operands = RandomOperands(lstm, 1);
    const LstmResult result = RunKernel(lstm, dtype, operands);
    EXPECT_EQ(result.h, operands[18]);
    EXPECT_EQ(result.c, operands[19]);
    EXPECT_TRUE(result.output.empty());
  }
}

TEST(LstmKernel, RunsWithoutRowsAndWithoutInputs) {
  ExpectNear({.batch = 0}, FBX_F32, 0);
  ExpectNear({.batch = 0}, FBX_F64, 0);
  ExpectNear({.inputs = 0}, FBX_F32, 1e-6);
}

TEST(LstmKernel, TwentyCallsOfOneStepEqualOneOfTwenty) {
  LstmCase lstm{.batch = 3, .steps = 20, .inputs = 6, .cells = 33, .time_major = true};
  auto operands = RandomOperands(lstm, 3);
  const LstmResult whole = RunKernel(lstm, FBX_F32, operands);
  const std::vector<double> x = operands[0];
  lstm.steps = 1;
  for (size_t t = 0; t < 20; ++t) {
    operands[0].assign(x.begin() + static_cast<long>(t) * 18, x.begin() + static_cast<long>(t + 1) * 18);
    const LstmResult step = RunKernel(lstm, FBX_F32, operands);
    operands[18] = step.h;
    operands[19] = step.c;
  }
  EXPECT_EQ(operands[18], whole.h);
  EXPECT_EQ(operands[19], whole.c);
}

TEST(LstmKernel, ReadsItsWeightsInTheFirstInvoke) {
  const LstmCase lstm{.batch = 1, .steps = 3, .inputs = 20, .cells = 30};
  const auto values = RandomOperands(lstm, 8);
  const FakeHost host;
  auto operands = Operands(lstm, FBX_F32, values);
  auto results = Results(lstm, FBX_F32, operands);
  FakeNode node(host, LstmKernelOfThePlugin(lstm), Attributes(lstm), std::move(operands), std::move(results));
  const auto fill = [&](auto value_of) {
    for (size_t i = 1; i <= 8; ++i)
      for (size_t k = 0; k < node.operand(i).count(); ++k)
        node.operand(i).data<float>()[k] = static_cast<float>(value_of(i, k));
  };
  fill([](size_t, size_t) { return 1e30; });
  ASSERT_EQ(node.Supports(), FBX_OK);
  ASSERT_EQ(node.Prepare(), FBX_OK);
  fill([&](size_t i, size_t k) { return values[i][k]; });
  ASSERT_EQ(node.Invoke(), FBX_OK);
  const float* const output = node.result(0).data<float>();
  EXPECT_EQ(std::vector<double>(output, output + node.result(0).count()),
            RunKernel(lstm, FBX_F32, values).output);
}

TEST(LstmKernel, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const int64_t batch : {1, 2, 3, 8}) {
    const LstmCase lstm{.batch = batch, .steps = 4, .inputs = 300, .cells = 400};
    const auto operands = RandomOperands(lstm, 5);
    const LstmResult one = RunKernel(lstm, FBX_F32, operands, 1);
    EXPECT_LE(Difference(one, Definition(lstm, operands)), 2e-6);
    for (const uint32_t threads : {2u, 3u, 7u}) {
      const LstmResult many = RunKernel(lstm, FBX_F32, operands, threads);
      EXPECT_EQ(many.output, one.output) << batch << " rows, " << threads << " threads";
      EXPECT_EQ(many.c, one.c);
    }
  }
}

TEST(LstmKernel, SharesRowsOfThePlainDefinitionOut) {
  const LstmCase lstm{.batch = 7, .steps = 800, .inputs = 40, .cells = 70, .outputs = 30};
  ExpectNear(lstm, FBX_F32, 2e-6, 3);
  ExpectNear(lstm, FBX_F64, 1e-12, 3);
}

TEST(LstmKernel, HasScratchForEachPartOfABatchThatIsSmallerThanThePool) {
  LstmCase lstm{.batch = 2, .steps = 3, .inputs = 5, .cells = 9};
  lstm.cifg = true;
  ExpectNear(lstm, FBX_F32, 2e-6, 5);
  ExpectNear(lstm, FBX_F64, 1e-12, 5);
}

TEST(LstmKernel, AgreesInEveryVariant) {
  for (int bits = 0; bits < 64; ++bits) {
    LstmCase lstm{.batch = 2, .steps = 6, .inputs = 5, .cells = 9};
    lstm.cifg = bits & 1;
    lstm.peephole = bits & 2;
    lstm.layer_norm = bits & 4;
    lstm.outputs = bits & 8 ? 4 : 0;
    lstm.projection_bias = (bits & 8) && (bits & 16);
    lstm.projection_clip = (bits & 8) && (bits & 32) ? 0.2 : 0;
    SCOPED_TRACE(bits);
    ExpectNear(lstm, FBX_F32, 3e-6);
    ExpectNear(lstm, FBX_F64, 1e-12);
  }
}

TEST(LstmKernel, AgreesWithDiagonalRecurrentWeights) {
  for (const fbx_dtype dtype : {FBX_F32, FBX_F64}) ExpectNear({.steps = 6, .diagonal = true}, dtype, 1e-6);
}

TEST(LstmKernel, AgreesForEveryActivationAndClip) {
  for (const char* activation : {"NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH"}) {
    for (const double clip : {0.0, 0.3}) {
      const LstmCase lstm{.steps = 8, .cells = 18, .activation = activation, .cell_clip = clip};
      ExpectNear(lstm, FBX_F32, 2e-6);
      ExpectNear(lstm, FBX_F64, 1e-12);
    }
  }
}

TEST(LstmKernel, RunsOnComputedWeights) {
  ExpectNear({.batch = 3, .constant_weights = false}, FBX_F32, 1e-6);
}

TEST(LstmKernel, TakesTheFormWithTwentyOperands) { ExpectNear({.operand_count = 20}, FBX_F32, 1e-6); }

TEST(LstmKernel, AgreesForTinyLargeAndZeroNumbers) {
  for (const double input : {0.0, 1e-30, 1e-4, 50.0, 1e6, 1e30}) {
    for (const double state : {0.0, 1e-20, 40.0, 1e20}) {
      LstmCase lstm{.batch = 2, .steps = 4, .inputs = 3, .cells = 21};
      lstm.input_scale = input;
      lstm.state_scale = state;
      const auto operands = RandomOperands(lstm, 7);
      const LstmResult fast = RunKernel(lstm, FBX_F32, operands), wanted = Definition(lstm, operands);
      // the plain code: sums of large numbers lose digits in f32 whoever adds them
      lstm.constant_weights = false;
      const double bound = std::max(2e-6, 2 * Difference(RunKernel(lstm, FBX_F32, operands), wanted));
      EXPECT_LE(Difference(fast, wanted), bound) << "inputs to " << input << ", states to " << state;
      EXPECT_LE(bound, 1e-4);
    }
  }
}

// Every cell gets its gates from the biases alone.
LstmResult WithBiases(const std::vector<double>& i, const std::vector<double>& f,
                      const std::vector<double>& g, const std::vector<double>& o,
                      const std::vector<double>& c) {
  const LstmCase lstm{.batch = 1, .steps = 1, .inputs = 1, .cells = static_cast<int64_t>(i.size())};
  auto operands = RandomOperands(lstm, 1);
  for (const int zero : {0, 1, 2, 3, 4, 5, 6, 7, 8, 18})
    std::fill(operands[zero].begin(), operands[zero].end(), 0.0);
  operands[12] = i, operands[13] = f, operands[14] = g, operands[15] = o, operands[19] = c;
  return RunKernel(lstm, FBX_F32, operands);
}

TEST(LstmKernel, CarriesInfinitiesAndNan) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const LstmResult r = WithBiases({inf, -inf, nan, 0, inf}, {-inf, inf, 0, 0, inf}, {inf, 1, 0, nan, -inf},
                                  {inf, inf, 0, 0, -inf}, {3, 0.5, 0, 0, inf});
  EXPECT_NEAR(r.c[0], 1, 1e-6);
  EXPECT_NEAR(r.c[1], 0.5, 1e-6);
  EXPECT_TRUE(std::isnan(r.c[2]) && std::isnan(r.h[2]));
  EXPECT_TRUE(std::isnan(r.c[3]) && std::isnan(r.h[3]));
  EXPECT_EQ(r.c[4], inf);
  EXPECT_NEAR(r.h[4], 0, 1e-30);
}

TEST(LstmKernel, KeepsSigmoidAndTanhWithinThreeUlp) {
  double worst_sigmoid = 0, worst_tanh = 0;
  for (double scale = 1e-8; scale < 100; scale *= 3) {
    std::vector<double> x;
    for (int k = -400; k <= 400; ++k) x.push_back(static_cast<float>(scale * k / 400));
    const std::vector<double> open(x.size(), 50), shut(x.size(), -87), zero(x.size(), 0);
    const LstmResult tanh = WithBiases(open, shut, x, open, zero);  // c = tanh(x)
    // c = sigmoid(x)
    const LstmResult sigmoid = WithBiases(shut, x, zero, open, std::vector<double>(x.size(), 1));
    for (size_t k = 0; k < x.size(); ++k) {
      const auto ulps = [](double got, double want) {
        return want == 0 ? 0 : std::abs(got - want) / std::abs(want) * 16777216;
      };
      worst_tanh = std::max(worst_tanh, ulps(tanh.c[k], std::tanh(x[k])));
      if (x[k] > -85) worst_sigmoid = std::max(worst_sigmoid, ulps(sigmoid.c[k], 1 / (1 + std::exp(-x[k]))));
    }
  }
  EXPECT_LE(worst_tanh, 6) << "in units of 2^-24 of the value: 2 to an ulp";
  EXPECT_LE(worst_sigmoid, 6);
}

// Instances pack for the instruction set they were made for, so that each may be tried on a machine that has
// it.
TEST(LstmKernel, AgreesOnEveryInstructionSetOfThisMachine) {
  const auto codes = rnn::VectorCodes();
  ASSERT_FALSE(codes.empty());
  for (const rnn::VectorCode* code : codes) {
    rnn::UseVectorCodeForTest(code);
    SCOPED_TRACE(std::to_string(code->lanes) + " lanes");
    EXPECT_EQ(&rnn::BestVectorCode(), code);
    for (const int64_t batch : {1, 2, 7}) {
      for (const int64_t cells : {5, 33, 64})
        ExpectNear({.batch = batch, .steps = 4, .cells = cells}, FBX_F32, 1e-6);
    }
  }
  rnn::UseVectorCodeForTest(nullptr);
  EXPECT_EQ(&rnn::BestVectorCode(), codes.front());
}

TEST(LstmKernel, InfersOutputAndStates) {
  const LstmCase lstm{.batch = 2, .steps = 3, .inputs = 5, .cells = 7, .outputs = 4};
  const FakeHost host;
  auto operands = Operands(lstm, FBX_F32, RandomOperands(lstm, 1));
  operands[0] = FakeTensor(FBX_F32, {-1, -1, 5});
  auto results = Results(lstm, FBX_F32, operands);
  FakeNode node(host, LstmKernelOfThePlugin(), Attributes(lstm), std::move(operands), std::move(results));
  ASSERT_EQ(node.Infer(), FBX_OK);
  EXPECT_THAT(node.inferred[0].dims, ElementsAre(-1, -1, 4));
  EXPECT_THAT(node.inferred[1].dims, ElementsAre(2, 4));
  EXPECT_THAT(node.inferred[2].dims, ElementsAre(2, 7));
}

// Changes the node and says why the kernel declines it.
template <class Change>
std::string WhyNot(const Change& change, LstmCase lstm = {}) {
  const FakeHost host;
  auto operands = Operands(lstm, FBX_F32, RandomOperands(lstm, 1));
  FakeAttrs attrs = Attributes(lstm);
  change(operands, attrs);
  auto results = Results(lstm, FBX_F32, Operands(lstm, FBX_F32, RandomOperands(lstm, 1)));
  FakeNode node(host, LstmKernelOfThePlugin(), attrs, std::move(operands), std::move(results));
  const fbx_status status = node.Supports();
  if (status == FBX_OK || host.diagnostics.empty()) return "status " + std::to_string(status);
  const Diagnostic& d = host.diagnostics.back();
  return (status == FBX_NOT_APPLICABLE ? "" : "error ") + (d.code.empty() ? "" : d.code + " ") + d.subject +
         ": " + d.message;
}

using Tensors = std::vector<FakeTensor>;

TEST(LstmKernel, DeclinesWeightsOfWhichOnlySomeAreQuantized) {
  EXPECT_EQ(WhyNot([](Tensors& t, FakeAttrs&) { t[2] = FakeTensor(FBX_I8, {7, 5}, FBX_TENSOR_CONST); }),
            "DTYPE operand 1: is f32, expected i8 beside i8 weights");
}

TEST(LstmKernel, DeclinesIntegerInput) {
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[0] = FakeTensor(FBX_I8, {1, 3, 5}); }),
              HasSubstr("DTYPE operand 1: is f32, expected i8 beside i8 input"));
}

TEST(LstmKernel, DeclinesSignBit) {
  EXPECT_THAT(
      WhyNot([](Tensors&, FakeAttrs& a) { a["fused_activation_function"] = std::string("SIGN_BIT"); }),
      HasSubstr("ATTR attr fused_activation_function"));
}

TEST(LstmKernel, DeclinesANegativeClip) {
  EXPECT_THAT(WhyNot([](Tensors&, FakeAttrs& a) { a["cell_clip"] = -1.0; }),
              HasSubstr("ATTR attr cell_clip"));
}

TEST(LstmKernel, DeclinesWrongOperands) {
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t.resize(21); }), HasSubstr("ARITY"));
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[6] = FakeTensor(); }),
              HasSubstr("OPERANDS operand 6: is absent"));
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[1] = FakeTensor(); }),
              HasSubstr("OPERANDS operand 5: is present"));
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[17] = t[12]; }), HasSubstr("OPERANDS operand 17"));
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[18] = FakeTensor(); }), HasSubstr("OPERANDS operand 18"));
  EXPECT_THAT(WhyNot([](Tensors& t, FakeAttrs&) { t[10] = t[12]; }), HasSubstr("OPERANDS operand 9"));
}

TEST(LstmKernel, DeclinesSizesThatDoNotFit) {
  const auto shape = [](size_t i, std::vector<int64_t> dims) {
    return WhyNot([=](Tensors& t, FakeAttrs&) { t[i] = FakeTensor(FBX_F32, dims, FBX_TENSOR_CONST); });
  };
  EXPECT_THAT(shape(0, {3, 5}), HasSubstr("RANK operand 0"));
  EXPECT_THAT(shape(2, {7, 6}), HasSubstr("SHAPE operand 2"));
  EXPECT_THAT(shape(7, {8, 7}), HasSubstr("SHAPE operand 7"));
  EXPECT_THAT(shape(14, {8}), HasSubstr("SHAPE operand 14"));
  EXPECT_THAT(shape(18, {2, 7}), HasSubstr("SHAPE operand 18"));
  EXPECT_THAT(shape(19, {1, 6}), HasSubstr("SHAPE operand 19"));
}

}  // namespace
}  // namespace fusebox::testing
