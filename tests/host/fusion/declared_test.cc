// SPDX-License-Identifier: Apache-2.0
// Rules without code: what a manifest says is what is built, and each condition has its own reason.
#include <gmock/gmock.h>

#include <functional>

#include "host/plugin/registry.h"
#include "tests/host/fusion/sites.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Outcome = RuleReport::Outcome;

// A plugin of one rule for "acme.sum", and no library.
std::string ManifestOf(const std::string& emits, const std::string& rewrite) {
  return R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "acme.sums", "version": "1.2.0", "namespace": "acme"},
 "provides": {"rules": [{"id": "acme.sum", "implements": ["acme.sum"], "emits": [)" +
         emits + R"(], "rewrite": )" + rewrite + "}]}}";
}

class Declared : public ::testing::Test {
 protected:
  std::shared_ptr<Registry> With(const std::string& emits, const std::string& rewrite) {
    return Rules({.plugins = {folder_.Write("fusebox-plugin.json", ManifestOf(emits, rewrite))}});
  }
  const Folder folder_;
};

constexpr const char* kOp = R"({"custom": "t.op"})";

TEST_F(Declared, PutsOperandsAndAttributesWhereTheManifestSays) {
  Module module = OneSite("acme.sum");
  Attrs& given = module.functions[0]->nodes[0]->attrs;
  given.Set("sizes", std::vector<int64_t>{3, 4});
  given.Set("unread", 1);
  const auto registry = With(kOp, R"({"operands": [1, null, 0], "attributes": {"k": {"from": "sizes"},
      "mode": {"value": "fast"}, "slope": {"from": "alpha", "value": 0.5}}})");
  const auto sites = FuseAll(module, *registry);
  ASSERT_TRUE(sites.at(0).fused) << sites[0].why;
  EXPECT_EQ(sites[0].why, "fused by acme.sum");
  const Function& main = *module.functions[0];
  ASSERT_EQ(main.nodes.size(), 1u);
  const Node& node = *main.nodes[0];
  EXPECT_EQ(node.name, "t.op");
  EXPECT_THAT(node.operands, ElementsAre(main.inputs[1], kNoValue, main.inputs[0]));
  Attrs wanted;
  wanted.Set("k", std::vector<int64_t>{3, 4});
  wanted.Set("mode", "fast");
  wanted.Set("slope", 0.5);
  EXPECT_TRUE(node.attrs == wanted) << ToString(node.attrs);
  EXPECT_EQ(*node.fused, (Provenance{"acme.sums", "1.2.0", "acme.sum", "acme.sum"}));
}

// x [2,3] times a constant [3,4].
Module Product() {
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput({DType::kF32, {2, 3}});
  const ValueId weights = main.AddConst<float>(DType::kF32, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Node& node = main.AddNode(Op::kStablehloComposite, {x, weights}, {{DType::kF32, {2, 4}}});
  node.name = "acme.sum";
  node.body = "body";
  main.outputs = node.results;
  Function& body = module.Add("body");
  const ValueId a = body.AddInput({DType::kF32, {2, 3}}), b = body.AddInput({DType::kF32, {3, 4}});
  body.outputs = body.AddNode(Op::kBatchMatmul, {a, b}, {{DType::kF32, {2, 4}}}).results;
  return module;
}

TEST_F(Declared, TransposesAreDoneAtOnceWhereTheyAreOfConstants) {
  Module module = Product();
  const auto registry = With(R"({"builtin": "FULLY_CONNECTED"})",
                             R"({"operands": [{"operand": 0, "rank": 2, "dtype": "f32"},
                            {"operand": 1, "transpose": [1, 0], "constant": true}, null]})");
  const auto sites = FuseAll(module, *registry);
  ASSERT_TRUE(sites.at(0).fused) << sites[0].why;
  EXPECT_THAT(sites[0].emitted, ElementsAre("FULLY_CONNECTED"));
  const Function& main = *module.functions[0];
  const Value& weights = main.value(main.nodes.at(0)->operands[1]);
  EXPECT_EQ(weights.type, (Type{DType::kF32, {4, 3}}));
  EXPECT_THAT(weights.data.As<float>(), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
}

TEST_F(Declared, KernelsSeeThatAnOperandIsConstant) {
  const std::string rewrite = R"({"operands": [0, {"operand": 1, "constant": true}],
                                  "attributes": {"first": {"value": 3}}})";
  Module constant = OneSite("acme.sum", true), computed = OneSite("acme.sum");
  const auto registry = With(R"({"custom": "t.weights"})", rewrite);
  EXPECT_EQ(FuseAll(constant, *registry).at(0).why, "fused by acme.sum");
  EXPECT_EQ(FuseAll(computed, *registry).at(0).why, "NONCONST: is computed, not constant (operand 1)");
}

TEST_F(Declared, TakesResultsInTheirOrder) {
  Module module;
  Function& main = module.Add("main");
  const ValueId x = main.AddInput({DType::kF32, {5}});
  const ValueId count = main.AddConst<int32_t>(DType::kI32, Shape::Scalar(), {2});
  Node& node = main.AddNode(Op::kStablehloComposite, {x, count}, {{DType::kI32, {2}}, {DType::kF32, {2}}});
  node.name = "acme.sum";
  main.outputs = node.results;
  const auto registry = With(R"({"builtin": "TOPK_V2"})", R"({"results": [1, 0]})");
  const auto sites = FuseAll(module, *registry);
  ASSERT_TRUE(sites.at(0).fused) << sites[0].why;
  const auto& results = main.nodes.at(0)->results;
  EXPECT_THAT(main.outputs, ElementsAre(results[1], results[0]));
}

// The same in 8 bits; each column of the constant has a scale.
Module QuantizedProduct(std::vector<float> scales) {
  Module module = Product();
  Function& main = *module.functions[0];
  const auto quantize = [](Function& f, ValueId v, std::vector<float> with, int32_t axis) {
    Quant quant;
    quant.zero_points = std::vector<int64_t>(with.size());
    quant.scales = std::move(with);
    quant.axis = axis;
    f.value(v).type.dtype = DType::kI8;
    f.value(v).quant = std::make_shared<const Quant>(std::move(quant));
  };
  for (const auto& f : module.functions) {
    const Node& node = *f->nodes[0];
    quantize(*f, node.operands[0], {0.5f}, 0);
    quantize(*f, node.operands[1], scales, 1);
    quantize(*f, node.results[0], {2}, 0);
  }
  main.value(main.nodes[0]->operands[1]).data =
      Buffer::Of<int8_t>(std::vector<int8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  return module;
}

constexpr const char* kTransposed = R"({"operands": [0, {"operand": 1, "transpose": [1, 0]}, null]})";

TEST_F(Declared, TransposedConstantsKeepTheirScales) {
  const std::vector<float> scales = {1, 2, 4, 4};
  for (const bool code : {false, true}) {
    Module module = QuantizedProduct(scales);
    if (code) module.functions[0]->nodes[0]->name = "t.product";
    const auto sites = FuseAll(module, *With(R"({"builtin": "FULLY_CONNECTED"})", kTransposed));
    ASSERT_TRUE(sites.at(0).fused) << sites[0].why;
    EXPECT_THAT(sites[0].emitted, ElementsAre("FULLY_CONNECTED"));
    const Function& main = *module.functions[0];
    const Value& weights = main.value(main.nodes.at(0)->operands[1]);
    EXPECT_EQ(weights.type, (Type{DType::kI8, {4, 3}}));
    EXPECT_THAT(weights.data.As<int8_t>(), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
    EXPECT_EQ(weights.quant->axis, 0);
    EXPECT_THAT(weights.quant->scales, ElementsAreArray(scales));
    EXPECT_THAT(main.value(main.outputs[0]).quant->scales, ElementsAre(2));
  }
}

TEST_F(Declared, WhatNoKernelTakesIsRefused) {
  Module module = QuantizedProduct({1, 2, 4, 4});
  for (const auto& f : module.functions) f->value(f->nodes[0]->operands[0]).quant = nullptr;
  const auto sites = FuseAll(module, *With(R"({"builtin": "FULLY_CONNECTED"})", kTransposed));
  EXPECT_FALSE(sites.at(0).fused);
  EXPECT_THAT(sites[0].why,
              AllOf(HasSubstr("the replacement is invalid: node 0 FULLY_CONNECTED: no kernel for "),
                    HasSubstr("no scale (operand 0)")));
  EXPECT_EQ(module.functions[0]->nodes.at(0)->name, "acme.sum");
}

TEST_F(Declared, ACustomOpWithoutAKernelHasTheTypesOfTheComposite) {
  const auto registry = With(R"({"custom": "acme.elsewhere", "version": 3})", "{}");
  Module kept = OneSite("acme.sum");
  const auto refused = FuseAll(kept, *registry);
  EXPECT_FALSE(refused.at(0).fused);
  EXPECT_THAT(refused[0].why,
              HasSubstr("the replacement is invalid: no kernel for acme.elsewhere(f32[2], f32[2])"));
  Module module = OneSite("acme.sum");
  const auto sites = FuseAll(module, *registry, {.kernels_elsewhere = true});
  ASSERT_TRUE(sites.at(0).fused) << sites[0].why;
  const Function& main = *module.functions[0];
  EXPECT_EQ(main.value(main.outputs[0]).type, kPair);
  EXPECT_EQ(main.nodes[0]->version, 3);
}

TEST_F(Declared, TellsTheVerificationItsTolerance) {
  Module module = OneSite("acme.sum");
  FusionOptions options;
  options.approve = [](const Candidate& candidate) -> Result<Approval> {
    EXPECT_EQ(candidate.tolerance.atol, 0.5);
    EXPECT_EQ(candidate.tolerance.rtol, 0.25);
    return Approval{};
  };
  EXPECT_TRUE(FuseAll(module, *With(kOp, R"({"tolerance": {"atol": 0.5, "rtol": 0.25}})"), options)[0].fused);
}

TEST_F(Declared, EachConditionHasItsReason) {
  const auto why = [&](const std::string& rewrite, const std::function<void(Function&)>& change = {}) {
    Module module = OneSite("acme.sum");
    if (change) change(*module.functions[0]);
    const std::string before = ToText(module);
    const auto sites = FuseAll(module, *With(kOp, rewrite));
    EXPECT_EQ(sites.at(0).rules.at(0).outcome, Outcome::kNotApplicable);
    EXPECT_EQ(ToText(module), before);
    return sites[0].why;
  };
  EXPECT_EQ(why(R"({"operands": [0]})"), "ARITY: has 2 operands, expected 1");
  EXPECT_EQ(why(R"({"operands": [0, 2]})"), "ARITY: has 2 operands, expected 3");
  EXPECT_EQ(why(R"({"results": [0, 1]})"), "ARITY: has 1 results, expected 2");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "dtype": "i8"}]})"),
            "DTYPE: is f32, expected i8 (operand 1)");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "rank": 2}]})"),
            "RANK: has rank 1, expected 2 (operand 1)");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "transpose": [1, 0]}]})"),
            "RANK: has rank 1, expected 2 (operand 1)");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "rank": 1}]})",
                [](Function& f) { f.value(f.inputs[1]).type.shape = Shape(); }),
            "RANK: has an unknown rank (operand 1)");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "constant": true}]})"),
            "NONCONST: is computed, not constant (operand 1)");
  EXPECT_EQ(why(R"({"operands": [0, {"operand": 1, "rank": 1}]})",
                [](Function& f) { f.nodes[0]->operands[1] = kNoValue; }),
            "ARITY: is absent (operand 1)");
  EXPECT_EQ(why(R"({"attributes": {"k": {"from": "sizes"}}})"), "ATTR: is missing (attr sizes)");
}

TEST_F(Declared, AnAttributeThatABuiltinOpDoesNotHaveIsRefused) {
  const auto why = [&](const std::string& attributes) {
    Module module = OneSite("acme.sum");
    const std::string before = ToText(module);
    const auto sites =
        FuseAll(module, *With(R"({"builtin": "ADD"})", R"({"attributes": )" + attributes + "}"));
    EXPECT_EQ(ToText(module) == before, !sites.at(0).fused);
    return sites[0].why;
  };
  EXPECT_EQ(why(R"({"fused_activation_function": {"value": "RELU"}})"), "fused by acme.sum");
  EXPECT_THAT(
      why(R"({"fused_activatoin_function": {"value": "RELU"}})"),
      HasSubstr("the replacement is invalid: ADD: attribute fused_activatoin_function is not a field"));
  EXPECT_THAT(why(R"({"fused_activation_function": {"value": 77.5}})"),
              HasSubstr("has a value of the wrong kind"));
}

// The reasons of conditions that stand in the manifest are kept like those that code gives.
TEST_F(Declared, WhatItsConditionsSayIsReported) {
  std::string text = ManifestOf(kOp, "{}");
  text =
      fusebox::With(text, R"("emits")", R"("when": {"alpha": {"minimum": 2}}, "versions": "1-3", "emits")");
  const auto registry = Rules({.plugins = {folder_.Write("fusebox-plugin.json", text)}});
  for (const bool fusable : {false, true}) {
    Module module = OneSite("acme.sum");
    Node& node = *module.functions[0]->nodes[0];
    node.attrs.Set("alpha", 1);
    if (fusable) node.attrs.Set("tfl_fusable_op", true);
    const auto sites = FuseAll(module, *registry, {.fusable_to_custom = true, .kernels_elsewhere = true});
    EXPECT_EQ(sites.at(0).fused, fusable);
    ASSERT_EQ(sites[0].rules.size(), fusable ? 2u : 1u) << sites[0].why;
    const RuleReport& rule = sites[0].rules[0];
    EXPECT_EQ(rule.rule + " " + rule.plugin + " " + rule.plugin_version, "acme.sum acme.sums 1.2.0");
    EXPECT_EQ(rule.outcome, Outcome::kNotApplicable);
    EXPECT_THAT(rule.reasons, ElementsAre("attribute alpha: 1 is less than 2"));
    if (!fusable) {
      EXPECT_EQ(sites[0].why, "attribute alpha: 1 is less than 2");
    }
  }
}

// A custom op's options are held against the schema that its plugin's manifest states, whoever emits it.
TEST_F(Declared, AnOpsSchemaHoldsForRulesWithCodeToo) {
  const std::string text = R"({"manifest_version": "1.0", "abi": {"major": 1},
 "plugin": {"id": "acme.ops", "version": "1.0.0", "namespace": "acme"}, "libraries": [{"platform": "linux-x86_64",
 "path": "none.so"}, {"platform": "linux-aarch64", "path": "none.so"}], "provides": {"ops": [{"custom": "t.op",
 "options_schema": {"properties": {"k": {"maximum": 5}}}}]}})";
  const auto registry = Rules({.plugins = {folder_.Write("fusebox-plugin.json", text)}});
  const auto why = [&](const char* key, AttrValue value) {
    Module module = OneSite("t.checked");
    module.functions[0]->nodes[0]->attrs.Set(key, std::move(value));
    return FuseAll(module, *registry).at(0).why;
  };
  EXPECT_EQ(why("k", int64_t{5}), "fused by t.checked");
  EXPECT_THAT(
      why("k", int64_t{6}),
      HasSubstr("t.op: option k: 6 is more than 5; set it as the options_schema of acme.ops 1.0.0 requires"));
  EXPECT_THAT(why("raw", std::string("anything")),
              HasSubstr("t.op: the option bytes are not a FlexBuffer map; write them as the options_schema"));
}

TEST_F(Declared, AnOpThatGivesAnotherTypeIsRefused) {
  Module module = Product();
  const auto sites = FuseAll(module, *With(R"({"builtin": "SHAPE"})", R"({"operands": [0, 1]})"));
  EXPECT_EQ(sites.at(0).rules.at(0).outcome, Outcome::kError);
  EXPECT_THAT(sites[0].why, HasSubstr("the replacement is invalid"));
  EXPECT_TRUE(module.functions[0]->nodes.at(0)->is(Op::kStablehloComposite));
}

TEST_F(Declared, APluginWithoutALibraryIsUsable) {
  const auto registry = With(kOp, "{}");
  ASSERT_TRUE(registry->LoadAll());
  for (const PluginInfo& info : registry->plugins())
    EXPECT_EQ(info.state, PluginInfo::State::kOk) << info.why;
  Module module = OneSite("acme.sum");
  EXPECT_TRUE(FuseAll(module, *registry).at(0).fused);
}

// An optional attribute is constrained by a condition with a default.
TEST_F(Declared, ConditionsCompareAnAbsentAttributeAsTheirDefault) {
  const std::string text =
      fusebox::With(fusebox::With(ExampleManifest(), R"("emits")", R"("rewrite": {}, "emits")"),
                    R"({"example_option": {"minimum": 0}})",
                    R"({"axis": {"const": -1, "default": -1}, "alpha": {"minimum": 0}})");
  const auto registry = Rules({.plugins = {folder_.Write("other/fusebox-plugin.json", text)}});
  const auto tried = [&](const std::vector<std::pair<std::string, int>>& values) {
    Attrs attrs;
    for (const auto& [name, value] : values) attrs.Set(name, value);
    std::vector<SkippedRule> skipped;
    const auto rules = registry->RulesFor("my_custom_fused_op", 1, attrs, &skipped);
    return rules && rules->size() == 1 ? "yes" : skipped.at(0).why;
  };
  EXPECT_EQ(tried({{"axis", -1}, {"alpha", 1}}), "yes");
  EXPECT_EQ(tried({{"alpha", 1}}), "yes");
  EXPECT_EQ(tried({{"axis", 0}, {"alpha", 1}}),
            "attribute axis: Failed to match expected value set by 'const' constraint.: 0");
  EXPECT_EQ(tried({{"axis", -1}}), "attribute lacks the key \"alpha\"");
}

TEST_F(Declared, APluginsLibraryIsNotOpenedForIt) {
  const std::string text =
      fusebox::With(fusebox::With(ExampleManifest(), R"("emits")", R"("rewrite": {}, "emits")"),
                    "my_custom_fused_op", "acme.sum");
  const auto registry = Rules({.plugins = {folder_.Write("other/fusebox-plugin.json", text)}});
  Attrs attrs;
  attrs.Set("example_option", 1);
  std::vector<SkippedRule> skipped;
  const auto rules = registry->RulesFor("acme.sum", 1, attrs, &skipped);
  ASSERT_TRUE(rules);
  EXPECT_THAT(skipped, IsEmpty());
  ASSERT_EQ(rules->size(), 1u);
  EXPECT_EQ((*rules)[0].declared->id, "acme.my_op.f32");
}

}  // namespace
}  // namespace fusebox
