// SPDX-License-Identifier: Apache-2.0
// plugins/null and samples/hello_plugin do what their pages say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/eval/eval.h"
#include "host/fusion/fusion.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Type kType{DType::kF32, {3}};

std::shared_ptr<Registry> Open(Config config) {
  config.plugin_path = {FUSEBOX_BUILD_DIR "/plugins", FUSEBOX_BUILD_DIR "/sample_plugins"};
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

// main = composite `name` of `operands` inputs and as many results; its body returns its inputs.
Module WithComposite(const std::string& name, int operands, Attrs attrs = {}) {
  Module module;
  Function& main = module.Add("main");
  for (int i = 0; i < operands; ++i) main.AddInput(kType);
  Node& node = main.AddNode(Op::kStablehloComposite, main.inputs, std::vector<Type>(operands, kType),
                            std::move(attrs));
  node.name = name;
  node.version = 1;
  node.body = "body";
  main.outputs = node.results;
  Function& body = module.Add("body");
  for (int i = 0; i < operands; ++i) body.outputs.push_back(body.AddInput(kType));
  return module;
}

std::string WhyNot(Registry& registry) {
  Module module = WithComposite("fusebox.null", 1);
  const auto sites = Fuse(module, registry);
  if (!sites || sites->size() != 1 || (*sites)[0].fused || (*sites)[0].rules.size() != 1)
    return "something else";
  const RuleReport& said = (*sites)[0].rules[0];
  return std::string(Name(said.outcome)) + ": " + testing::PrintToString(said.reasons);
}

TEST(NullPlugin, DeclinesWithTheReasonThatItsOptionGives) {
  EXPECT_THAT(WhyNot(*Open({})), HasSubstr("not applicable: { \"NULL: it declines everything\" }"))
      << "the manifest's default";
  Config config;
  config.options["fusebox.null"].Set("because", "the user said so");
  EXPECT_THAT(WhyNot(*Open(config)), HasSubstr("NULL: the user said so"));
}

TEST(NullPlugin, DeclinesToRunItsOp) {
  Function f("f");
  Node& node = f.AddNode(Op::kCustom, {f.AddInput(kType)}, {kType});
  node.name = "fusebox.null";
  const auto kernel = ChooseKernel(*Open({}), f, node);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("it declines everything"));
}

TEST(SamplePlugin, FusesItsComposite) {
  Attrs attrs;
  attrs.Set("example_option", 10);
  Module module = WithComposite("my_custom_fused_op", 2, attrs);
  const auto registry = Open({});
  const auto sites = Fuse(module, *registry);
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);
  EXPECT_TRUE((*sites)[0].fused) << (*sites)[0].why;
  ASSERT_EQ(module.functions[0]->nodes.size(), 1u);
  const Node& fused = *module.functions[0]->nodes[0];
  EXPECT_EQ(fused.name, "my_custom_fused_op");
  EXPECT_EQ(ToString(fused.attrs), "{example_option=10}");
  ASSERT_NE(fused.fused, nullptr);
  EXPECT_EQ(fused.fused->plugin, "com.acme.my_op");
}

TEST(SamplePlugin, LeavesACompositeThatBreaksItsConditionAlone) {
  Attrs attrs;
  attrs.Set("example_option", -1);
  Module module = WithComposite("my_custom_fused_op", 2, attrs);
  const auto sites = Fuse(module, *Open({}));
  ASSERT_TRUE(sites) << sites.error().message;
  EXPECT_FALSE((*sites)[0].fused);
  EXPECT_THAT((*sites)[0].why, HasSubstr("example_option: -1 is less than 0"));
}

// Both results of the op on {1, 2, d} and {3, 4, 0}, where d is denormal.
std::vector<float> Compute(Registry& registry) {
  Function f("f");
  Attrs attrs;
  attrs.Set("example_option", 2);
  const ValueId a = f.AddInput(kType), b = f.AddInput(kType);
  Node& node = f.AddNode(Op::kCustom, {a, b}, {kType, kType}, attrs);
  node.name = "my_custom_fused_op";
  const float denormal = 1e-40f;
  const Tensor operands[] = {{kType, Buffer::Of<float>(std::vector<float>{1, 2, denormal})},
                             {kType, Buffer::Of<float>(std::vector<float>{3, 4, 0})}};
  const auto results = Evaluate(registry, f, node, operands);
  EXPECT_TRUE(results) << results.error().message;
  std::vector<float> all;
  if (!results) return all;
  for (const Tensor& result : *results) {
    const auto values = result.data.As<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(SamplePlugin, ReceivesItsOptionFromTheUsersConfiguration) {
  EXPECT_THAT(Compute(*Open({})), ElementsAre(8, 12, 2 * 1e-40f, 3, 8, 0)) << "denormals are kept by default";
  Config config;
  config.options["com.acme.my_op"].Set("denormals", "flush");
  EXPECT_THAT(Compute(*Open(config)), ElementsAre(8, 12, 0, 3, 8, 0));
}

}  // namespace
}  // namespace fusebox
