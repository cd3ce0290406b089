// SPDX-License-Identifier: Apache-2.0
// Bias and activation go into the op before them where that changes nothing, and stay with a reason where it
// would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/tflite/tflite.h"
#include "tests/testing/pipeline.h"

namespace fusebox::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

#define ASSERT_OK(result) ASSERT_TRUE(result) << (result).error().message

struct BothForms {
  Written written;
  std::unique_ptr<Module> optimized;
  Tensors fused, unfused;
};

// The written file, and the graph as it was before it was optimized, on the same inputs.
Result<BothForms> RunBoth(const std::string& sample) {
  FUSEBOX_ASSIGN(const std::string dir, Sample(sample));
  converter::Options options;
  FUSEBOX_ASSIGN(options.registry, Plugins({}));
  options.signatures = {"serving_default"};
  std::unique_ptr<Module> before;
  options.after_pass = [&](std::string_view pass, const Module& module) {
    if (pass == "fold-late") before = Clone(module);
  };
  BothForms out;
  FUSEBOX_ASSIGN(out.written, Convert(dir, options, "optimized"));
  FUSEBOX_ASSIGN(out.optimized, tflite::ReadFile(out.written.path));
  FUSEBOX_ASSIGN(auto session, Open(out.written.path, options.registry));
  FUSEBOX_ASSIGN(auto model, Model::FromModule(std::move(before), {.registry = options.registry}));
  FUSEBOX_ASSIGN(auto plain, Session::Create(model));
  const Tensors inputs = RandomInputs(*session, 3);
  FUSEBOX_ASSIGN(out.fused, Invoke(*session, inputs));
  FUSEBOX_ASSIGN(out.unfused, Invoke(*plain, inputs));
  return out;
}

std::string ActivationOf(const Module& module, Op op) {
  for (const auto& node : module.functions[0]->nodes) {
    if (node->is(op)) return node->attrs.str("fused_activation_function", "NONE");
  }
  return "no such op";
}

TEST(Optimize, BatchNormalizationIsInTheWeights) {
  const auto both = RunBoth("conv_classifier");
  ASSERT_OK(both);
  EXPECT_THAT(OpsOf(*both->optimized),
              UnorderedElementsAre(std::pair("CONV_2D", 2), std::pair("DEPTHWISE_CONV_2D", 1),
                                   std::pair("MAX_POOL_2D", 1), std::pair("RESHAPE", 1),
                                   std::pair("FULLY_CONNECTED", 1), std::pair("SOFTMAX", 1)));
  EXPECT_EQ(Difference(both->fused, both->unfused), "");
}

TEST(Optimize, ConvBiasAndReluAreOneConv) {
  const auto both = RunBoth("conv_relu");
  ASSERT_OK(both);
  EXPECT_THAT(OpsOf(*both->optimized), UnorderedElementsAre(std::pair("CONV_2D", 1)));
  EXPECT_EQ(ActivationOf(*both->optimized, Op::kConv2D), "RELU");
  EXPECT_EQ(Difference(both->fused, both->unfused), "");
}

TEST(Optimize, MatMulBiasAndReluAreOneFullyConnected) {
  const auto both = RunBoth("dense");
  ASSERT_OK(both);
  EXPECT_THAT(OpsOf(*both->optimized),
              UnorderedElementsAre(std::pair("FULLY_CONNECTED", 3), std::pair("SOFTMAX", 1)));
  EXPECT_EQ(ActivationOf(*both->optimized, Op::kFullyConnected), "RELU");
  EXPECT_EQ(Difference(both->fused, both->unfused), "");
}

TEST(Optimize, LeavesAPreActivationThatHasASecondReader) {
  const auto both = RunBoth("conv_relu_two_consumers");
  ASSERT_OK(both);
  EXPECT_EQ(OpsOf(*both->optimized).at("RELU"), 1);
  EXPECT_EQ(ActivationOf(*both->optimized, Op::kConv2D), "NONE");
  EXPECT_THAT(both->written.report.notes,
              Contains(HasSubstr("RELU is not merged into CONV_2D: its operand has 2 readers")));
  EXPECT_EQ(Difference(both->fused, both->unfused), "");
}

TEST(Optimize, LeavesABiasThatVariesOverTheWidth) {
  const auto both = RunBoth("conv_relu_spatial_bias");
  ASSERT_OK(both);
  EXPECT_EQ(OpsOf(*both->optimized).at("ADD"), 1);
  EXPECT_EQ(ActivationOf(*both->optimized, Op::kConv2D), "NONE");
  EXPECT_THAT(both->written.report.notes,
              Contains(HasSubstr("the bias is not merged into CONV_2D: it varies over dimension 2")));
  EXPECT_EQ(Difference(both->fused, both->unfused), "");
}

TEST(Variables, ThatTheModelWritesCountFromRunToRun) {
  const auto dir = Sample("counter");
  ASSERT_OK(dir);
  converter::Options options;
  options.registry = *Plugins({});
  const auto written = Convert(*dir, options, "counter");
  ASSERT_OK(written);
  int kept = 0, frozen = 0;
  for (const Variable& variable : written->report.variables) {
    EXPECT_NE(variable.why, "") << variable.name;
    kept += variable.mutability == Variable::Mutability::kMutable;
    frozen += variable.mutability == Variable::Mutability::kReadOnly;
  }
  EXPECT_EQ(kept, 1);
  EXPECT_EQ(frozen, 1);
  const auto module = tflite::ReadFile(written->path);
  ASSERT_OK(module);
  ASSERT_EQ((*module)->variables.size(), 1u);

  auto session = Open(written->path, options.registry, "serving_default");
  ASSERT_OK(session);
  const auto count = [&](float by) {
    const auto outputs = Invoke(**session, {Floats(Shape::Scalar(), {by})});
    EXPECT_TRUE(outputs) << outputs.error().message;
    return outputs ? (*outputs)[0].data.As<float>()[0] : -1;
  };
  EXPECT_EQ((*session)->outputs()[0].name, "count");
  EXPECT_EQ(count(1), 1);
  EXPECT_EQ(count(1), 2);
  EXPECT_EQ(count(1), 3);
  ASSERT_OK((*session)->SelectSignature("peek"));
  const auto peeked = Invoke(**session, {});
  ASSERT_OK(peeked);
  EXPECT_EQ((*peeked)[(*session)->outputs()[0].name == "count" ? 0 : 1].data.As<float>()[0], 3);
  (*session)->ResetState();
  ASSERT_OK((*session)->SelectSignature("serving_default"));
  EXPECT_EQ(count(5), 5);
}

}  // namespace
}  // namespace fusebox::testing
