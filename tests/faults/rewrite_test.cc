// SPDX-License-Identifier: Apache-2.0
// Rules that lie about what they built, and kernels that lie about types: refused with the reason, the graph
// unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/eval/eval.h"
#include "host/fusion/fusion.h"

namespace fusebox {
namespace {

using testing::HasSubstr;

const Type kType{DType::kF32, {2, 3}};

std::shared_ptr<Registry> Faulty() {
  Config config{.plugin_path = {FUSEBOX_FAULTY}, .search_default_path = false};
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

// main(x) = composite(x) of that name, whose body is the identity.
Module WithComposite(const std::string& name) {
  Module module;
  Function& main = module.Add("main");
  Node& node = main.AddNode(Op::kStablehloComposite, {main.AddInput(kType, "x")}, {kType});
  node.name = name;
  node.version = 1;
  node.body = "body";
  node.location.name = "site";
  main.outputs = node.results;
  Function& body = module.Add("body");
  body.outputs = {body.AddInput(kType, "x")};
  return module;
}

struct Lie {
  std::string name, reason;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

class LyingRule : public testing::TestWithParam<Lie> {};

TEST_P(LyingRule, IsRefusedAndTheBodyStays) {
  const auto registry = Faulty();
  Module module = WithComposite("fault." + GetParam().name);
  const std::string before = ToText(module);
  const auto sites = Fuse(module, *registry);
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);
  const SiteReport& site = (*sites)[0];
  EXPECT_FALSE(site.fused);
  ASSERT_EQ(site.rules.size(), 1u) << site.why;
  EXPECT_EQ(site.rules[0].rule, "fault.rewrites." + GetParam().name);
  EXPECT_EQ(site.rules[0].plugin, "fault.rewrites");
  EXPECT_EQ(Name(site.rules[0].outcome), GetParam().name == "declines_late" ? "not applicable" : "error");
  ASSERT_FALSE(site.rules[0].reasons.empty());
  EXPECT_THAT(testing::PrintToString(site.rules[0].reasons), HasSubstr(GetParam().reason));
  EXPECT_EQ(ToText(module), before);
}

INSTANTIATE_TEST_SUITE_P(All, LyingRule,
                         testing::ValuesIn(std::vector<Lie>{
                             {"missing_result", "result 0 was not set"},
                             {"wrong_type", "result 0 is i32[3], the composite declares f32[2,3]"},
                             {"wrong_shape", "result 0 is f32[5,5,5], the composite declares f32[2,3]"},
                             {"unknown_builtin", "NO_SUCH_OP"},
                             {"unknown_custom", "nobody.knows"},
                             {"dangling_result", "result 0 is not a value of this rewrite"},
                             {"dangling_operand", "operand 0 is not a value of this rewrite"},
                             {"four_results", "fault.copy"},
                             {"result_beyond", "5"},
                             {"operand_beyond", "9"},
                             {"huge_const", "const"},
                             {"early_attr", "attr"},
                             {"fails_late", "LATE: changed its mind"},
                             {"strange_status", ""},
                             {"declines_late", ""},
                         }),
                         [](const auto& info) { return info.param.name; });

TEST(SoundRule, BesideTheLyingOnesIsApplied) {
  const auto registry = Faulty();
  Module module = WithComposite("fault.sound");
  const auto sites = Fuse(module, *registry);
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ(sites->size(), 1u);
  EXPECT_TRUE((*sites)[0].fused) << (*sites)[0].why;
  const Function& main = *module.functions[0];
  ASSERT_EQ(main.nodes.size(), 1u);
  EXPECT_EQ(main.nodes[0]->name, "fault.copy");
}

TEST(ThrowingRule, IsAnErrorWithItsMessage) {
  const auto registry = Faulty();
  Module module = WithComposite("fault.throws");
  const auto sites = Fuse(module, *registry);
  ASSERT_TRUE(sites) << sites.error().message;
  ASSERT_EQ((*sites)[0].rules.size(), 1u);
  EXPECT_EQ(Name((*sites)[0].rules[0].outcome), "error");
  EXPECT_THAT((*sites)[0].rules[0].reasons, testing::ElementsAre("EXCEPTION: an exception of unknown type"));
}

TEST(ThrowingKernel, IsPassedOverWithItsReason) {
  const auto registry = Faulty();
  const auto why = [&](int64_t at) {
    Module module;
    Function& main = module.Add("main");
    Node& node = main.AddNode(Op::kCustom, {main.AddInput(kType)}, {Type{}});
    node.name = "fault.throws";
    node.attrs.Set("at", at);
    const auto kernel = ChooseKernel(*registry, main, node);
    return kernel ? "chosen" : kernel.error().message;
  };
  EXPECT_THAT(why(0), HasSubstr("declined by fault.throws: EXCEPTION: supports threw"));
  EXPECT_EQ(why(1), "chosen");
  EXPECT_THAT(why(2), HasSubstr("declined by plugin fault.throws: out of memory"));
}

TEST(BrokenPlugin, IsTheReasonWhyItsCompositeIsNotFused) {
  const auto registry = Faulty();
  Module module = WithComposite("fault.failing_load");
  const auto sites = Fuse(module, *registry);
  ASSERT_TRUE(sites) << sites.error().message;
  EXPECT_FALSE((*sites)[0].fused);
  EXPECT_THAT((*sites)[0].why, HasSubstr("the licence server is down"));
}

// An op that a plugin promises and no rule emits.
Module WithFusable(const std::string& name) {
  Module module = WithComposite(name);
  module.functions[0]->nodes[0]->attrs.Set("tfl_fusable_op", true);
  return module;
}

TEST(BrokenPlugin, IsNotNamedAsTheMakerOfACustomOp) {
  const auto registry = Faulty();
  for (const std::string name : {"fault.other_version", "fault.failing_load"}) {
    Module module = WithFusable(name);
    testing::internal::CaptureStderr();
    const auto sites = Fuse(module, *registry, {.fusable_to_custom = true, .kernels_elsewhere = true});
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(sites) << sites.error().message;
    const SiteReport& site = (*sites)[0];
    EXPECT_TRUE(site.fused) << site.why;
    ASSERT_EQ(site.rules.size(), 2u);
    EXPECT_EQ(site.rules[0].rule, name + ".rule");
    EXPECT_EQ(Name(site.rules[0].outcome), "error");
    EXPECT_THAT(testing::PrintToString(site.rules[0].reasons), HasSubstr("the plugin is broken: "));
    EXPECT_EQ(site.rules[1].rule, "tfl_fusable_op");
    EXPECT_EQ(site.rules[1].plugin, "");
    EXPECT_EQ(module.functions[0]->nodes[0]->fused->plugin, "");
    EXPECT_THAT(said, HasSubstr("rule " + name + ".rule of " + name + " 1.0.0: the plugin is broken: "));
  }
}

TEST(SoundPlugin, IsNamedAsTheMakerOfACustomOp) {
  const auto registry = Faulty();
  Module module = WithFusable("fault.throws.late");
  const auto sites = Fuse(module, *registry, {.fusable_to_custom = true});
  ASSERT_TRUE(sites) << sites.error().message;
  EXPECT_EQ((*sites)[0].rules.at(0).plugin, "fault.throws");
  EXPECT_EQ((*sites)[0].rules[0].plugin_version, "1.0.0");
}

class LyingInfer : public testing::TestWithParam<Lie> {};

TEST_P(LyingInfer, IsAnErrorThatNamesPluginOpResultAndMistake) {
  const auto registry = Faulty();
  Module module;
  Function& main = module.Add("main");
  Node& node = main.AddNode(Op::kCustom, {main.AddInput(kType)}, {Type{}});
  node.name = "fault." + GetParam().name;
  main.outputs = node.results;
  const Status status = InferNode(*registry, module, main, node);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              testing::EndsWith("plugin " + node.name + ": " + node.name + ": infer " + GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    All, LyingInfer,
    testing::ValuesIn(std::vector<Lie>{
        {"infer_beyond", "sets result 7, but the op has 1 results"},
        {"infer_nothing", "does not set result 0"},
        {"infer_negative", "sets dim 0 of result 0 to -5, expected at least -1 (unknown)"},
        {"infer_huge_rank", "sets result 0 to rank 1073741824, expected -1 (unknown) to 64"},
        {"infer_unknown_dtype", "sets result 0 to dtype 9999, which does not exist"},
    }),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox
