// SPDX-License-Identifier: Apache-2.0
// Bodies that stay behind fused ops, ops of composites without a rule, and the record of both in a file.
#include <gmock/gmock.h>

#include "host/graph/flex.h"
#include "host/tflite/tflite.h"
#include "tests/host/fusion/sites.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Keep = FusionOptions::KeepBodies;

// Fuses and returns the body of main's only node; null: none.
const Function* Kept(Module& module, std::vector<SiteReport>* sites = nullptr, Keep keep = Keep::kCustom) {
  FusionOptions options;
  options.keep_bodies = keep;
  auto all = FuseAll(module, *Rules(), options);
  EXPECT_TRUE(all[0].fused) << all[0].why;
  if (sites) *sites = std::move(all);
  const Node& node = *module.functions[0]->nodes.back();
  return node.body.empty() ? nullptr : module.Find(node.body);
}

TEST(KeepBody, TakesTheOperandsInTheOrderOfTheOp) {
  Module module = OneSite("t.swap");
  const Function* body = Kept(module);
  ASSERT_NE(body, nullptr);
  EXPECT_THAT(body->nodes[0]->operands, ElementsAre(body->inputs[1], body->inputs[0]))
      << "the op takes (b, a), the body subtracts b from a";
}

TEST(KeepBody, HoldsTheConstantsOfTheSite) {
  Module module = OneSite("t.swap", true);
  const Function* body = Kept(module);
  ASSERT_NE(body, nullptr);
  ASSERT_EQ(body->inputs.size(), 2u);
  EXPECT_THAT(body->value(body->nodes[0]->operands[1]).data.As<float>(), ElementsAre(3, 4));
  EXPECT_EQ(body->nodes[0]->operands[0], body->inputs[1]);
}

TEST(KeepBody, OfAnOpThatTakesAnOperandTwice) {
  Module module = OneSite("t.twice", true);
  const Function* body = Kept(module);
  ASSERT_NE(body, nullptr);
  ASSERT_EQ(body->inputs.size(), 2u);
  EXPECT_NE(body->inputs[0], body->inputs[1]);
  EXPECT_EQ(body->nodes[0]->operands[0], body->inputs[0]);
}

TEST(KeepBody, OfAnOpWithAnAbsentOperandGoesIntoAFile) {
  Module module = OneSite("t.gap");
  module.functions[0]->input_names = {"a", "b"};
  module.functions[0]->output_names = {"c"};
  const Function* body = Kept(module);
  ASSERT_NE(body, nullptr);
  ASSERT_EQ(body->inputs.size(), 3u);
  RecordFused(module);
  const auto bytes = tflite::Write(module);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto back = tflite::Read(Buffer::Copy(std::as_bytes(std::span(*bytes))), "gap.tflite");
  ASSERT_TRUE(back) << back.error().message;
  const Status attached = AttachFused(**back);
  ASSERT_TRUE(attached) << attached.error().message;
  const Node& node = *(*back)->functions[0]->nodes[0];
  EXPECT_EQ(node.operands[2], kNoValue);
  EXPECT_FALSE(node.body.empty());
}

TEST(KeepBody, IsRefusedWithAReason) {
  for (const auto& [name, reason] :
       {std::pair("t.first", "an operand of the body does not reach the fused op"),
        {"t.two", "more than one op"}}) {
    Module module = OneSite(name);
    std::vector<SiteReport> sites;
    EXPECT_EQ(Kept(module, &sites), nullptr);
    EXPECT_THAT(::testing::PrintToString(sites[0].rules[0].reasons), HasSubstr(reason));
  }
  Module placeholder = OneSite("t.swap");
  placeholder.Find("body")->placeholder = true;
  std::vector<SiteReport> sites;
  EXPECT_EQ(Kept(placeholder, &sites), nullptr);
  EXPECT_THAT(::testing::PrintToString(sites[0].rules[0].reasons), HasSubstr("placeholder"));
  Module none = OneSite("t.swap");
  EXPECT_EQ(Kept(none, &sites, Keep::kNone), nullptr);
  EXPECT_THAT(sites[0].rules[0].reasons, IsEmpty());
}

Module Fusable(const std::string& name = "my.op") {
  Module module = OneSite(name);
  Node& node = *module.functions[0]->nodes[0];
  node.attrs.Set("tfl_fusable_op", true);
  node.attrs.Set("example_option", 10);
  return module;
}

TEST(FusableOp, BecomesACustomOpOfItsNameWithoutAnyPlugin) {
  for (const char* name : {"my.op", "t.outer"}) {  // no rule; a rule that declines
    Module module = Fusable(name);
    FusionOptions options;
    options.fusable_to_custom = options.kernels_elsewhere = true;
    EXPECT_TRUE(FuseAll(module, *Rules(), options)[0].fused) << name;
    const Node& node = *module.functions[0]->nodes[0];
    EXPECT_TRUE(node.is(Op::kCustom));
    EXPECT_EQ(node.name, name);
    EXPECT_EQ(ToString(node.attrs), "{example_option=10}");
    EXPECT_EQ(node.fused->rule, "tfl_fusable_op");
  }
}

// Lists too, which TensorFlow's converter refuses; a bool stays one, where it would write an integer.
TEST(FusableOp, KeepsListsAndBoolsInAFile) {
  Module module = Fusable();
  Attrs& attrs = module.functions[0]->nodes[0]->attrs;
  attrs.Set("sizes", std::vector<int64_t>{3, -4});
  attrs.Set("scales", std::vector<double>{0.5, 0.25});
  attrs.Set("names", std::vector<std::string>{"a", "bc"});
  attrs.Set("exact", true);
  attrs.Set("slow", false);
  Attrs wanted = attrs;
  wanted.Erase("tfl_fusable_op");
  FusionOptions options;
  options.fusable_to_custom = options.kernels_elsewhere = true;
  ASSERT_TRUE(FuseAll(module, *Rules(), options)[0].fused);
  const auto bytes = tflite::Write(module);
  ASSERT_TRUE(bytes) << bytes.error().message;
  const auto back = tflite::Read(Buffer::Copy(std::as_bytes(std::span(*bytes))), "fusable.tflite");
  ASSERT_TRUE(back) << back.error().message;
  const Attrs& read = (*back)->functions[0]->nodes[0]->attrs;
  EXPECT_TRUE(read == wanted) << ToString(read);
}

TEST(FusableOp, StaysACompositeUnlessAskedFor) {
  Module module = Fusable();
  EXPECT_FALSE(FuseAll(module, *Rules())[0].fused);
}

// Whose library is not there: its manifest says what the op takes, but it does not get the credit.
TEST(FusableOp, IsHeldAgainstTheSchemaOfWhoPromisesTheOp) {
  const Folder folder;
  folder.Write("acme/fusebox-plugin.json", ExampleManifest());
  for (const int64_t option : {10, -1}) {
    Module module = Fusable("my_custom_fused_op");
    module.functions[0]->nodes[0]->attrs.Set("example_option", option);
    FusionOptions options;
    options.fusable_to_custom = options.kernels_elsewhere = true;
    Config config;
    config.plugin_path = {folder.path()};
    const auto sites = FuseAll(module, *Rules(config), options);
    EXPECT_EQ(sites[0].fused, option == 10) << sites[0].why;
    if (option == 10) {
      EXPECT_EQ(module.functions[0]->nodes[0]->fused->plugin, "");
    } else {
      ASSERT_FALSE(sites[0].rules.empty());
      EXPECT_EQ(sites[0].rules.back().outcome, RuleReport::Outcome::kError);
      EXPECT_THAT(sites[0].why, HasSubstr("example_option"));
    }
  }
}

TEST(Records, OfFusedOpsComeBack) {
  Module module = OneSite("t.swap");
  const std::string body = Kept(module)->name;
  RecordFused(module);
  ASSERT_EQ(module.metadata.size(), 1u);
  RecordFused(module);
  ASSERT_EQ(module.metadata.size(), 1u) << "recording again replaces the record";
  Node& node = *module.functions[0]->nodes[0];
  const Provenance before = *node.fused;
  node.fused = nullptr;
  node.body.clear();
  const Status attached = AttachFused(module);
  ASSERT_TRUE(attached) << attached.error().message;
  EXPECT_EQ(*node.fused, before);
  EXPECT_EQ(node.body, body);
}

TEST(Records, OfNothingAreNoMetadata) {
  Module module = OneSite("t.swap");
  RecordFused(module);
  EXPECT_THAT(module.metadata, IsEmpty());
  EXPECT_TRUE(AttachFused(module));
}

std::string Damage(const char* key, int64_t value) {
  Module module = OneSite("t.swap");
  Kept(module);
  auto record = std::make_shared<Attrs>();
  record->Set("subgraph", 0);
  record->Set("op", 0);
  record->Set("body", 2);
  record->Set(key, value);
  Attrs all;
  all.Set("0/0", std::shared_ptr<const Attrs>(record));
  const std::string bytes = WriteFlexMap(all);
  module.metadata = {{"fusebox.fused", Buffer::Copy(std::as_bytes(std::span(bytes)))}};
  const Status status = AttachFused(module);
  return status ? "" : status.error().message;
}

TEST(Records, ThatAreDamagedAreErrorsWithTheirPlace) {
  EXPECT_EQ(Damage("body", 2), "");
  for (const auto& [key, value] : std::vector<std::pair<const char*, int64_t>>{
           {"subgraph", 9}, {"subgraph", -2}, {"op", 1}, {"op", -1}, {"body", 99}, {"body", 0}}) {
    EXPECT_THAT(Damage(key, value), HasSubstr("metadata fusebox.fused: entry 0/0: ")) << key << " " << value;
  }
  Module module = OneSite("t.swap");
  module.metadata = {{"fusebox.fused", Buffer::Of<char>(std::string_view("no flexbuffer"))}};
  EXPECT_FALSE(AttachFused(module));
  Attrs flat;
  flat.Set("0/0", 3);
  const std::string bytes = WriteFlexMap(flat);
  module.metadata = {{"fusebox.fused", Buffer::Copy(std::as_bytes(std::span(bytes)))}};
  const Status status = AttachFused(module);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("entry 0/0 is not a map"));
}

// A file in which op and body call each other must not hang whoever reads it.
TEST(Records, ThatMakeABodyCallItselfAreRefused) {
  Module module = OneSite("t.swap");
  Kept(module);
  Function& body = *module.functions[2];
  Node& inner = body.AddNode(Op::kCustom, body.inputs, {kPair});
  inner.name = "t.op";
  RecordFused(module);
  const auto record = [](int64_t subgraph, int64_t op) {
    Attrs map;
    map.Set("subgraph", subgraph);
    map.Set("op", op);
    map.Set("body", 2 - subgraph);
    return std::shared_ptr<const Attrs>(std::make_shared<Attrs>(map));
  };
  Attrs all;
  all.Set("a", record(0, 0));
  all.Set("b", record(2, 1));
  const std::string bytes = WriteFlexMap(all);
  module.metadata = {{"fusebox.fused", Buffer::Copy(std::as_bytes(std::span(bytes)))}};
  const Status status = AttachFused(module);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("recursive"));
}

}  // namespace
}  // namespace fusebox
