// SPDX-License-Identifier: Apache-2.0
// Sites meet rules: what a rule sees, who is asked in which order, what a rewrite may not do, what the report
// says.
#include <gmock/gmock.h>

#include "tests/host/fusion/sites.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outcome = RuleReport::Outcome;

TEST(Fuse, PutsTheOpInPlaceOfTheCompositeWithItsProvenance) {
  Module module = OneSite("t.swap");
  module.functions[0]->nodes[0]->attrs.Set("k", 7);
  const auto sites = FuseAll(module, *Rules());
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_TRUE(sites[0].fused);
  EXPECT_EQ(sites[0].function, "main");
  EXPECT_EQ(sites[0].location, "model/t.swap");
  EXPECT_EQ(sites[0].why, "fused by t.swap");
  EXPECT_THAT(sites[0].emitted, ElementsAre("t.op"));
  const Function& main = *module.functions[0];
  ASSERT_EQ(main.nodes.size(), 1u);
  const Node& node = *main.nodes[0];
  EXPECT_THAT(node.operands, ElementsAre(main.inputs[1], main.inputs[0]));
  EXPECT_EQ(node.attrs.i64("k", 0), 7);
  EXPECT_EQ(*node.fused, (Provenance{"t.rules", "1.2.3", "t.swap", "t.swap"}));
  EXPECT_EQ(node.location, (Location{"model/t.swap", "layer"}));
}

TEST(Fuse, ShowsRulesWhatIsConstant) {
  Module computed = OneSite("t.const"), constant = OneSite("t.const", true);
  const auto no = FuseAll(computed, *Rules());
  ASSERT_EQ(no[0].rules.size(), 1u);
  EXPECT_EQ(no[0].rules[0].outcome, Outcome::kNotApplicable);
  EXPECT_THAT(no[0].rules[0].reasons, ElementsAre("NONCONST: scale is not constant (operand 1)"));
  EXPECT_EQ(no[0].why, "NONCONST: scale is not constant (operand 1)");
  EXPECT_TRUE(FuseAll(constant, *Rules())[0].fused);
}

TEST(Fuse, ShowsRulesWhatIsAVariable) {
  Module module = OneSite("t.state");
  EXPECT_FALSE(FuseAll(module, *Rules())[0].fused);
  Function& main = *module.functions[0];
  const ValueId state = main.AddValue(kPair, "state");
  main.value(state).is_variable = true;
  main.nodes[0]->operands[1] = state;
  EXPECT_TRUE(FuseAll(module, *Rules())[0].fused);
}

TEST(Fuse, ShowsRulesHowManyReadAResult) {
  for (const bool read : {false, true}) {
    Module module;
    Function& main = module.Add("main");
    Function& body = module.Add("body");
    const ValueId x = body.AddInput(kPair);
    body.outputs = {x, x};
    const auto results = Composite(main, "t.unread", {main.AddInput(kPair)}, "body", 2).results;
    main.outputs = {results[0]};
    if (read) main.outputs.push_back(main.AddNode(Op::kRelu, {results[1]}, {kPair}).results[0]);
    const auto sites = FuseAll(module, *Rules());
    EXPECT_EQ(sites[0].fused, !read);
    if (read) {
      EXPECT_THAT(sites[0].why, HasSubstr("has 1 readers"));
    }
  }
}

TEST(Fuse, FoldsConstantsOfTheSiteAndOfTheRule) {
  Module module = OneSite("t.scale", true);
  Function& main = *module.functions[0];
  std::swap(main.nodes[0]->operands[0], main.nodes[0]->operands[1]);  // scale the constant (3, 4)
  FuseAll(module, *Rules());
  ASSERT_LE(main.nodes.size(), 1u);
  const ValueId out = main.nodes.empty() ? main.outputs[0] : main.nodes[0]->operands[0];
  EXPECT_THAT(main.value(out).data.As<float>(), ElementsAre(6, 8));
}

TEST(Fuse, ShowsKernelsTheConstantsThatARewritePassesOnOrMoves) {
  for (const auto& [how, first] : {std::pair("pass", 3), {"reversed", 4}, {"transposed", 4}}) {
    Module module = OneSite("t.weigh", true);
    Attrs& given = module.functions[0]->nodes[0]->attrs;
    given.Set("how", how);
    given.Set("first", first);
    const auto sites = FuseAll(module, *Rules());
    EXPECT_TRUE(sites[0].fused) << how << ": " << sites[0].why;
    EXPECT_THAT(sites[0].emitted, ElementsAre("t.weights"));
  }
  Module computed = OneSite("t.weigh");
  EXPECT_EQ(FuseAll(computed, *Rules())[0].why, "NONCONST: it is computed");
}

TEST(Fuse, RefusesAConstantThatChangesAfterItWasRead) {
  Module late = OneSite("t.late", true), unread = OneSite("t.late");
  EXPECT_THAT(FuseAll(late, *Rules())[0].why,
              HasSubstr("a constant changed after an op of constants had read it"));
  EXPECT_TRUE(FuseAll(unread, *Rules())[0].fused);
}

TEST(Fuse, FindsTheToleranceOfTheRuleOfAnOp) {
  Module module = OneSite("t.two");
  const auto registry = Rules();
  FuseAll(module, *registry);
  Node& node = *module.functions[0]->nodes[0];
  EXPECT_EQ(ToleranceOf(*registry, node).rtol, 0.5);
  Provenance other = *node.fused;
  other.plugin = "t.other";
  node.fused = std::make_shared<const Provenance>(other);
  EXPECT_EQ(ToleranceOf(*registry, node).rtol, 0);
}

TEST(Fuse, AsksBetterRulesFirstAndKeepsEveryReason) {
  Module module = OneSite("t.better");
  const auto sites = FuseAll(module, *Rules());
  ASSERT_EQ(sites[0].rules.size(), 2u);
  EXPECT_EQ(sites[0].rules[0].rule, "t.better.high");
  EXPECT_EQ(sites[0].rules[1].rule, "t.better.low");
  EXPECT_FALSE(sites[0].fused);
}

TEST(Fuse, LeavesACompositeThatTwoPluginsClaim) {
  Module module = OneSite("t.shared");
  const auto sites = FuseAll(module, *Rules());
  EXPECT_FALSE(sites[0].fused);
  EXPECT_THAT(sites[0].why, HasSubstr("set the preferred one in fusebox.json"));
  EXPECT_FALSE(FuseAll(module, *Rules({.prefer = {{"t.shared", {"nobody"}}}}))[0].fused);
  const auto chosen = FuseAll(module, *Rules({.prefer = {{"t.shared", {"t.other", "t.rules"}}}}));
  EXPECT_EQ(chosen[0].why, "fused by o.shared");
}

// What is logged while the module is fused.
std::string Logged(Module& module, const Config& config = {}) {
  const auto registry = Rules(config);
  testing::internal::CaptureStderr();
  FuseAll(module, *registry);
  return testing::internal::GetCapturedStderr();
}

// main(a, b) = first(second(a, b), b).
Module TwoSites(const std::string& first, const std::string& second) {
  Module module = OneSite(second);
  Function& main = *module.functions[0];
  main.outputs = Composite(main, first, {main.outputs[0], main.inputs[1]}, "body").results;
  return module;
}

TEST(Fuse, WarnsOnceOfACompositeThatTwoPluginsClaim) {
  Module module = TwoSites("t.shared", "t.shared");
  EXPECT_EQ(
      Logged(module),
      "W fusion: model/t.shared: composite t.shared: both t.rules (built in) and t.other (built in) have "
      "a rule for it; set the preferred one in fusebox.json: \"prefer\": {\"t.shared\": [\"t.rules\", "
      "\"t.other\"]}\n");
}

TEST(Fuse, WarnsIfNoCompositeIsFused) {
  Module declined = TwoSites("t.const", "nobody.knows");
  declined.source = "m.tflite";
  EXPECT_EQ(Logged(declined),
            "W fusion: m.tflite: none of 1 composites is fused: t.const: NONCONST: scale is not constant "
            "(operand 1)\n");
  Module unknown = TwoSites("nobody.knows", "nobody.else");
  EXPECT_EQ(Logged(unknown), "");
  Module one = TwoSites("t.swap", "nobody.knows");
  EXPECT_EQ(Logged(one), "");
  Module internal = OneSite("fusebox.erf");
  EXPECT_EQ(Logged(internal), "");
}

TEST(Fuse, RefusesAttributesThatABuiltinOpDoesNotHave) {
  const auto said = [](std::string_view key, std::string_view value) {
    Module module = OneSite("t.typo");
    Attrs& given = module.functions[0]->nodes[0]->attrs;
    given.Set("key", std::string(key));
    given.Set("value", std::string(value));
    const std::string before = ToText(module);
    const auto sites = FuseAll(module, *Rules());
    EXPECT_EQ(ToText(module) == before, !sites.at(0).fused);
    return sites[0].why;
  };
  EXPECT_EQ(said("fused_activation_function", "RELU"), "fused by t.typo");
  EXPECT_THAT(said("fused_activatoin_function", "RELU"),
              HasSubstr("attribute fused_activatoin_function is not a field of AddOptions; did you mean"));
  EXPECT_THAT(said("fused_activation_function", "RELUU"), HasSubstr("\"RELUU\" is not one of its values"));
}

TEST(Fuse, ARuleThatFailsIsReportedOnce) {
  Module module = OneSite("t.throws");
  Function& main = *module.functions[0];
  main.outputs.push_back(Composite(main, "t.throws", {main.inputs[0], main.inputs[1]}, "body").results[0]);
  testing::internal::CaptureStderr();
  const auto sites = FuseAll(module, *Rules());
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "W fusion: model/t.throws: t.throws is not fused by rule t.throws of t.rules 1.2.3: "
            "EXCEPTION: match threw\n");
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_EQ(sites[1].rules.at(0).outcome, RuleReport::Outcome::kError);
}

TEST(Fuse, SaysWhenNobodyKnowsTheName) {
  Module module = OneSite("t.unheard");
  const auto sites = FuseAll(module, *Rules());
  EXPECT_THAT(sites[0].rules, IsEmpty());
  EXPECT_EQ(sites[0].why, "no plugin has a rule for this name");
}

TEST(Fuse, LooksInsideARefusedCompositeOnly) {
  for (const bool outer_fuses : {false, true}) {
    Module module;
    Function& main = module.Add("main");
    const ValueId a = main.AddInput(kPair), b = main.AddInput(kPair);
    main.outputs = Composite(main, outer_fuses ? "t.outer2" : "t.outer", {a, b}, "outer").results;
    Function& outer = module.Add("outer");
    const ValueId x = outer.AddInput(kPair), y = outer.AddInput(kPair);
    outer.outputs = Composite(outer, "t.swap", {x, y}, "inner").results;
    SubtractBody(module, "inner");
    const auto sites = FuseAll(module, *Rules());
    EXPECT_EQ(sites.size(), outer_fuses ? 1u : 2u);
    EXPECT_EQ(sites[0].fused, outer_fuses);
    EXPECT_EQ(outer.nodes[0]->is(Op::kStablehloComposite), outer_fuses);
  }
}

// A site that becomes no node at all must not hide the one behind it.
TEST(Fuse, GoesOnBehindARewriteToNothing) {
  Module module;
  Function& main = module.Add("main");
  const ValueId a = main.AddInput(kPair), b = main.AddInput(kPair);
  const ValueId passed = Composite(main, "t.pass", {a, b}, "body").results[0];
  main.outputs = Composite(main, "t.first", {passed, b}, "body2").results;
  SubtractBody(module, "body");
  SubtractBody(module, "body2");
  const auto sites = FuseAll(module, *Rules());
  ASSERT_EQ(sites.size(), 2u);
  EXPECT_TRUE(sites[0].fused && sites[1].fused);
  ASSERT_EQ(main.nodes.size(), 1u);
  EXPECT_THAT(main.nodes[0]->operands, ElementsAre(a));
}

TEST(Fuse, RefusesWhatARewriteMayNotDo) {
  for (const auto& [name, reason] :
       {std::pair("t.control", "WHILE calls functions, which a rewrite cannot emit"),
        {"t.huge", "does not fit into memory"}}) {
    Module module = OneSite(name);
    const std::string before = ToText(module);
    const auto sites = FuseAll(module, *Rules());
    ASSERT_EQ(sites[0].rules.size(), 1u);
    EXPECT_EQ(sites[0].rules[0].outcome, Outcome::kError);
    EXPECT_THAT(::testing::PrintToString(sites[0].rules[0].reasons), HasSubstr(reason));
    EXPECT_EQ(ToText(module), before);
  }
}

TEST(Fuse, ADisprovedReplacementIsNotApplied) {
  Module module = OneSite("t.first");
  const std::string before = ToText(module);
  FusionOptions options;
  options.approve = [](const Candidate& candidate) -> Result<Approval> {
    EXPECT_EQ(candidate.body.name, "body");
    EXPECT_EQ(candidate.replacement.nodes.size(), 1u);
    EXPECT_THAT(candidate.used_results, ElementsAre(true));
    return Approval{.approved = false, .verification = "off by 1", .why = "off by 1"};
  };
  const auto sites = FuseAll(module, *Rules(), options);
  EXPECT_EQ(sites[0].rules[0].outcome, Outcome::kDiffers);
  EXPECT_THAT(sites[0].rules[0].reasons, ElementsAre("off by 1"));
  EXPECT_EQ(sites[0].why, "differs from its body: off by 1");
  EXPECT_EQ(ToText(module), before);
}

TEST(Fuse, PassesTheToleranceOfTheRule) {
  for (const auto& [rule, rtol] : {std::pair("t.two", 0.5), std::pair("t.first", 0.0)}) {
    Module module = OneSite(rule);
    FusionOptions options;
    options.approve = [&](const Candidate& candidate) -> Result<Approval> {
      EXPECT_EQ(candidate.tolerance.rtol, rtol);
      EXPECT_EQ(candidate.tolerance.atol, 0);
      return Approval{};
    };
    FuseAll(module, *Rules(), options);
  }
}

TEST(Placeholder, IsABodyThatIgnoresItsOperands) {
  Module module = OneSite("t.first");
  Function& body = *module.Find("body");
  EXPECT_FALSE(IsPlaceholder(module, body));
  body.nodes.clear();
  body.outputs = {body.AddConst<float>(DType::kF32, {2}, {0, 0})};
  EXPECT_TRUE(IsPlaceholder(module, body));
  body.inputs.clear();
  EXPECT_FALSE(IsPlaceholder(module, body)) << "it has no operands to ignore";
}

}  // namespace
}  // namespace fusebox
