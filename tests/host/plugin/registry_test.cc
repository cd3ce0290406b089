// SPDX-License-Identifier: Apache-2.0
// The registry with plugins that are linked into the test: no file, no library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "host/graph/flex.h"
#include "host/graph/view.h"
#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"
#include "tests/host/plugin/linked.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<Registry> Make(Config config,
                               std::vector<const fbx_entry*> entries = {&linked::kOne, &linked::kTwo}) {
  config.search_default_path = false;
  auto registry = Registry::Create(config, entries);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

std::vector<std::string> Ids(const Result<std::vector<RuleRef>>& rules) {
  std::vector<std::string> ids;
  if (!rules) return {rules.error().message};
  for (const RuleRef& ref : *rules) ids.emplace_back(FromAbi(ref.rule->id));
  return ids;
}

std::vector<std::string> Whys(const std::vector<SkippedRule>& skipped) {
  std::vector<std::string> whys;
  for (const SkippedRule& s : skipped) whys.push_back("rule " + s.rule + " of " + s.plugin + ": " + s.why);
  return whys;
}

TEST(Registry, OffersRulesByBenefitAndVersion) {
  const auto registry = Make({}, {&linked::kOne});
  EXPECT_THAT(Ids(registry->RulesFor("lstm_5f", 0, {})), ElementsAre("one.better", "one.any"));
  EXPECT_THAT(Ids(registry->RulesFor("lstm_5f", 3, {})), ElementsAre("one.better", "one.any"));
  std::vector<SkippedRule> skipped;
  EXPECT_THAT(Ids(registry->RulesFor("lstm_5f", 1, {}, &skipped)), ElementsAre("one.any"));
  EXPECT_THAT(Whys(skipped), ElementsAre("rule one.better of x.one: it does not support version 1"));
  EXPECT_THAT(Ids(registry->RulesFor("gru", 0, {})), IsEmpty());
}

TEST(Registry, AsksTheUserWhichOfTwoPluginsIsFirst) {
  EXPECT_THAT(
      Ids(Make({})->RulesFor("lstm_5f", 0, {})),
      ElementsAre("composite lstm_5f: both x.one (built in) and x.two (built in) have a rule for it; "
                  "set the preferred one in fusebox.json: \"prefer\": {\"lstm_*\": [\"x.one\", \"x.two\"]}"));
  EXPECT_THAT(Ids(Make({.prefer = {{"lstm_*", {"x.two"}}}})->RulesFor("lstm_5f", 0, {})),
              ElementsAre("two.any", "one.better", "one.any"));
  EXPECT_THAT(
      Ids(Make({.prefer = {{"lstm_*", {"x.two"}}, {"lstm_5f", {"x.one"}}}})->RulesFor("lstm_5f", 0, {})),
      ElementsAre("one.better", "one.any", "two.any"))
      << "the full name is stronger than a prefix";
}

TEST(Registry, ListsTheKernelsOfAnOp) {
  const auto who = [](const std::vector<KernelRef>& kernels) {
    std::vector<std::string> rows;
    for (const KernelRef& ref : kernels)
      rows.push_back(std::string(ref.plugin->id()) + " " + std::to_string(ref.kernel->min_version));
    return rows;
  };
  const auto registry = Make({});
  EXPECT_THAT(who(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 0)),
              ElementsAre("x.one 1", "x.two 3", "x.two 1"));
  EXPECT_THAT(who(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 4)), ElementsAre("x.two 3"));
  EXPECT_THAT(who(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 10)), IsEmpty());
  EXPECT_THAT(who(registry->KernelsFor(FBX_OP_BUILTIN, "my.op", 0)), IsEmpty());
  EXPECT_THAT(who(Make({.prefer = {{"my.op", {"x.two"}}}})->KernelsFor(FBX_OP_CUSTOM, "my.op", 1)),
              ElementsAre("x.two 1", "x.one 1"));
  EXPECT_THAT(who(Make({}, {&linked::kTwo, &linked::kOne})->KernelsFor(FBX_OP_CUSTOM, "my.op", 1)),
              ElementsAre("x.two 1", "x.one 1"))
      << "in the order in which they were found";
}

TEST(Registry, SaysWhoProvidesAnOpEvenWhenDenied) {
  const auto registry = Make({.deny = {"x.two"}});
  EXPECT_THAT(registry->WhoProvides(FBX_OP_CUSTOM, "my.op"),
              ElementsAre("x.one 1.2.3", "x.two 1.2.3 (denied: the configuration denies \"x.two\")"));
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 3).size(), 0u);
}

TEST(Registry, WarnsOfListsThatNameNobody) {
  const auto said = [](const Config& config) {
    testing::internal::CaptureStderr();
    Make(config);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said({.allow = {"x.*"}, .deny = {"x.one", "*.tw?"}}), "");
  EXPECT_EQ(said({.deny = {"x.on"}}),
            "W config: configuration: deny: no plugin x.on here; did you mean \"x.one\"?\n");
  EXPECT_EQ(said({.allow = {"com.acme.*", "x.*"}}),
            "W config: configuration: allow: no plugin com.acme.* here\n");
}

class BrokenManifest : public testing::Test {
 protected:
  // A registry with one plugin on the search path, in a folder com.acme.folder.
  std::shared_ptr<Registry> With(const std::string& manifest) {
    path_ = folder_.Write("com.acme.folder/fusebox-plugin.json", manifest);
    testing::internal::CaptureStderr();
    auto registry = Make({.plugin_path = {folder_.path()}}, {});
    said_ = testing::internal::GetCapturedStderr();
    return registry;
  }
  const Folder folder_;
  std::string path_, said_;
};

TEST_F(BrokenManifest, IsAWarningAndTheReasonWhyItsOpsHaveNoKernel) {
  const auto registry = With(fusebox::With(RunnableManifest(), "\"license\"", "\"licence\""));
  const std::string why = path_ + ":2:78: plugin/licence: unknown key \"licence\"; did you mean \"license\"?";
  EXPECT_EQ(said_, "W loader: plugin com.acme.my_op is broken: " + why + "\n");
  EXPECT_EQ(registry->plugins()[0].manifest.id, "com.acme.my_op");
  EXPECT_THAT(registry->WhoProvides(FBX_OP_CUSTOM, "my_custom_fused_op"),
              ElementsAre("com.acme.my_op 1.0.0 (broken: " + why + ")"));
  std::vector<SkippedRule> skipped;
  EXPECT_THAT(Ids(registry->RulesFor("my_custom_fused_op", 1, {}, &skipped)), IsEmpty());
  EXPECT_THAT(Whys(skipped),
              ElementsAre("rule acme.my_op.f32 of com.acme.my_op: the plugin is broken: " + why));
  ASSERT_EQ(skipped.size(), 1u);
  EXPECT_TRUE(skipped[0].broken);
}

TEST_F(BrokenManifest, WithoutAnIdHasTheNameOfItsFolder) {
  for (const char* text :
       {"{", "[1]", R"({"plugin": 3, "provides": {"ops": [1, {"custom": []}], "rules": 2}})"}) {
    EXPECT_EQ(With(text)->plugins()[0].manifest.id, "com.acme.folder") << text;
    EXPECT_THAT(said_, HasSubstr("plugin com.acme.folder is broken: " + path_)) << text;
  }
}

TEST_F(BrokenManifest, DoesNotShadowASoundOne) {
  folder_.Write("z/fusebox-plugin.json", RunnableManifest());
  const auto registry = With(fusebox::With(RunnableManifest(), "\"license\"", "\"licence\""));
  EXPECT_EQ(Name(registry->plugins()[0].state), "broken");
  EXPECT_NE(Name(registry->plugins()[1].state), "shadowed");
}

TEST_F(BrokenManifest, ForAnotherMachineIsNoWarning) {
  const auto registry =
      With(fusebox::With(RunnableManifest(), "\"requires_cpu\": []", "\"requires_cpu\": [\"neon\"]"));
  EXPECT_EQ(Name(registry->plugins()[0].state), "broken");
  EXPECT_EQ(said_, "");
}

TEST(Registry, BuiltInPluginsNeedNoLeave) {
  const auto registry = Make({.allow = {"com.acme.*"}}, {&linked::kOne});
  EXPECT_EQ(registry->plugins()[0].state, PluginInfo::State::kOk);
}

TEST(Registry, UnloadsWhatItLoaded) {
  linked::unloads = 0;
  Make({}).reset();
  EXPECT_EQ(linked::unloads, 2);
}

TEST(Registry, RefusesOptionsOfAPluginThatTakesNone) {
  Config config{.search_default_path = false};
  config.options["x.one"].Set("speed", 3);
  const fbx_entry* const entries[] = {&linked::kOne};
  const auto registry = Registry::Create(config, entries);
  ASSERT_FALSE(registry);
  EXPECT_EQ(registry.error().message, "built-in plugin: options of x.one: the plugin has no options");
}

void Emit(const HostCall& call, int32_t severity, std::string_view code, std::string_view message,
          std::string_view subject = {}) {
  const fbx_diag diag{FBX_HEAD(fbx_diag), severity, AsAbi(code), AsAbi(message), AsAbi(subject)};
  call.abi()->emit(call.abi(), &diag);
}

class Options : public testing::Test {
 protected:
  std::string Refusal(const std::string& config_text) {
    folder_.Write("plugins/a/fusebox-plugin.json", RunnableManifest());
    auto config = ReadConfig(folder_.Write("fusebox.json", config_text));
    EXPECT_TRUE(config) << config.error().message;
    config->search_default_path = false;
    const auto registry = Registry::Create(*config);
    return registry ? "accepted" : With(registry.error().message, folder_.path() + "/", "");
  }
  Folder folder_;
};

TEST_F(Options, AreCheckedAgainstThePluginsSchema) {
  EXPECT_EQ(Refusal(R"({"plugin_path": ["plugins"], "options": {"com.acme.my_op": {"denormals": "flush"}}})"),
            "accepted");
  EXPECT_EQ(Refusal("{\"plugin_path\": [\"plugins\"],\n \"options\": {\"com.acme.my_op\":\n  {\"denormal\": "
                    "\"flush\"}}}"),
            "fusebox.json:3:4: options of com.acme.my_op: denormal: unknown key \"denormal\"; did you mean "
            "\"denormals\"?");
  EXPECT_THAT(
      Refusal(R"({"plugin_path": ["plugins"], "options": {"com.acme.my_op": {"denormals": "flsh"}}})"),
      HasSubstr("denormals: \"flsh\" is not one of \"keep\", \"flush\"; did you mean \"flush\"?"));
}

TEST_F(Options, OfAnOpAreCheckedAgainstTheSchemaOfItsPlugin) {
  folder_.Write("plugins/a/fusebox-plugin.json", RunnableManifest());
  const auto registry = Make({.plugin_path = {folder_.path() + "/plugins"}}, {});
  const std::string required = " as the options_schema of com.acme.my_op 1.0.0 requires";
  Node node{.name = "my_custom_fused_op"};
  node.attrs.Set("example_option", 10);
  EXPECT_TRUE(registry->CheckOptions(node));
  node.attrs.Set("example_option", -1);
  EXPECT_EQ(registry->CheckOptions(node).error().message,
            "option example_option: -1 is less than 0; set it" + required);
  node.attrs = {};
  EXPECT_EQ(registry->CheckOptions(node).error().message,
            "options: lacks the key \"example_option\"; set it" + required);
  node.raw_options = "\x01\x02\x03\x04";
  EXPECT_EQ(registry->CheckOptions(node).error().message,
            "the option bytes are not a FlexBuffer map; write them" + required);
  node.name = "unheard_of";
  EXPECT_TRUE(registry->CheckOptions(node));
}

// The example with these properties of the op's options.
std::string WithProperties(const std::string& properties) {
  return With(With(RunnableManifest(), "\"required\": [\"example_option\"],", ""),
              "{\"example_option\": {\"type\": \"integer\", \"minimum\": 0}}", properties);
}

TEST_F(Options, OfAnOpGetTheDefaultsOfItsSchema) {
  folder_.Write("plugins/a/fusebox-plugin.json",
                WithProperties(R"({"alpha": {"type": "number", "default": 0.5}, "mode": {"default": "fast"},
    "window": {"type": "object", "properties": {"size": {"default": 3}, "step": {"default": [1, 2]}}}})"));
  const auto registry = Make({.plugin_path = {folder_.path() + "/plugins"}}, {});
  Node node{.name = "my_custom_fused_op"};
  auto window = std::make_shared<Attrs>();
  window->Set("size", 7);
  node.attrs.Set("window", std::shared_ptr<const Attrs>(window));
  node.attrs.Set("mode", std::string("exact"));
  node.raw_options = WriteFlexMap(node.attrs);
  registry->FillOptions(node);
  EXPECT_EQ(ToString(node.attrs), "{alpha=0.5, mode=exact, window={size=7, step=[1,2]}}");
  EXPECT_EQ(node.raw_options, "") << "kernels that read the bytes get the defaults too";
  Node bytes{.name = "my_custom_fused_op", .raw_options = WriteFlexMap(Attrs())};
  registry->FillOptions(bytes);
  EXPECT_EQ(ToString(bytes.attrs), "{alpha=0.5, mode=fast}");
  Node blob{.name = "my_custom_fused_op"};
  blob.attrs.Set("blob", std::monostate());
  blob.raw_options = "bytes that attributes cannot hold";
  registry->FillOptions(blob);
  EXPECT_EQ(ToString(blob.attrs), "{blob=none}");
  EXPECT_EQ(blob.raw_options, "bytes that attributes cannot hold");
  Node other{.name = "unheard_of"};
  registry->FillOptions(other);
  EXPECT_TRUE(other.attrs.empty());
}

TEST_F(Options, OfAnOpMeetTheSchemaOfItsVersion) {
  const std::string op = R"({"custom": "my_custom_fused_op", "version": )";
  folder_.Write("plugins/a/fusebox-plugin.json",
                With(RunnableManifest(), "\"ops\": [",
                     "\"ops\": [" + op + R"(2, "options_schema": {"required": ["second"]}}, )"));
  const auto registry = Make({.plugin_path = {folder_.path() + "/plugins"}}, {});
  Node node{.name = "my_custom_fused_op", .version = 1};
  EXPECT_THAT(registry->CheckOptions(node).error().message, HasSubstr("lacks the key \"example_option\""));
  node.version = 2;
  EXPECT_THAT(registry->CheckOptions(node).error().message, HasSubstr("lacks the key \"second\""));
}

TEST_F(Options, OfAnOpMeetTheSchemaBesideTheRuleThatEmitsIt) {
  folder_.Write("plugins/a/fusebox-plugin.json",
                With(WithProperties("{}"), "{\"custom\": \"my_custom_fused_op\", \"version\": 1}",
                     R"({"custom": "acme.elsewhere", "options_schema": {"required": ["beta"]}})"));
  const auto registry = Make({.plugin_path = {folder_.path() + "/plugins"}}, {});
  EXPECT_FALSE(registry->CheckOptions(Node{.name = "acme.elsewhere"}));
}

TEST_F(Options, OfACompositeDecideWhetherARuleIsAsked) {
  folder_.Write("plugins/a/fusebox-plugin.json", RunnableManifest());
  const auto registry = Make({.plugin_path = {folder_.path() + "/plugins"}}, {});
  Attrs attrs;
  attrs.Set("example_option", -1);
  std::vector<SkippedRule> skipped;
  EXPECT_THAT(Ids(registry->RulesFor("my_custom_fused_op", 1, attrs, &skipped)), IsEmpty());
  EXPECT_THAT(
      Whys(skipped),
      ElementsAre("rule acme.my_op.f32 of com.acme.my_op: attribute example_option: -1 is less than 0"));
  skipped.clear();
  EXPECT_THAT(Ids(registry->RulesFor("my_custom_fused_op", 1, {}, &skipped)), IsEmpty());
  EXPECT_THAT(Whys(skipped), ElementsAre(HasSubstr("lacks the key \"example_option\"")));
  skipped.clear();
  attrs.Set("example_option", 1);
  EXPECT_THAT(Ids(registry->RulesFor("my_custom_fused_op", 1, attrs, &skipped)), IsEmpty());
  EXPECT_THAT(Whys(skipped), ElementsAre(HasSubstr("my_op.so: cannot open shared object file")))
      << "the library is not there";
}

TEST(Registry, AnswersManyThreadsAtOnce) {
  const auto registry = Make({.prefer = {{"lstm_*", {"x.two"}}}});
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        good += registry->RulesFor("lstm_" + std::to_string(i), 0, {}).has_value();
        good += registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1).size() == 2;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 400);
}

TEST(HostCall, TurnsDiagnosticsIntoAnError) {
  const auto registry = Make({}, {&linked::kOne});
  const auto kernels = registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1);
  ASSERT_EQ(kernels.size(), 1u);
  HostCall call(*kernels[0].plugin, nullptr);
  Emit(call, FBX_ERROR, "DTYPE", "only f32", "operand 1");
  Emit(call, FBX_ERROR, "RANK", "is 3");
  const Status status = call.Check(FBX_UNSUPPORTED);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnsupported);
  EXPECT_EQ(status.error().message, "plugin x.one: DTYPE: only f32 (operand 1); RANK: is 3");
  EXPECT_EQ(call.Check(FBX_OUT_OF_MEMORY).error().message, "plugin x.one: out of memory")
      << "the first two are gone";
  EXPECT_EQ(call.Check(77).error().message, "plugin x.one: unknown status 77");
  EXPECT_TRUE(call.Check(FBX_OK));
  EXPECT_EQ(&HostCall::From(call.abi()), &call);
}

TEST(HostCall, SurvivesAPluginThatTalksWithoutEnd) {
  const auto registry = Make({}, {&linked::kOne});
  HostCall call(*registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1)[0].plugin, nullptr);
  for (int i = 0; i < 10000; ++i) Emit(call, FBX_NOTE, "X", std::string(10000, 'x'));
  const auto diags = call.TakeDiags();
  EXPECT_LE(diags.size(), 1000u);
  EXPECT_LE(diags[0].message.size(), 10000u);
  call.abi()->emit(call.abi(), nullptr);
  fbx_diag torn{};
  torn.head.size = 8;
  call.abi()->emit(call.abi(), &torn);
  EXPECT_THAT(call.TakeDiags(), IsEmpty());
}

TEST(HostCall, OffersTheExtensionsOfItsServices) {
  struct Threads : Services {
    const void* Find(std::string_view id) const override {
      return id == "fusebox.threads/1" ? this : nullptr;
    }
  } services;
  const auto registry = Make({}, {&linked::kOne});
  HostCall call(*registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1)[0].plugin, &services);
  EXPECT_EQ(call.abi()->get_extension(call.abi(), AsAbi("fusebox.threads/1")), &services);
  EXPECT_EQ(call.abi()->get_extension(call.abi(), AsAbi("fusebox.weights/1")), nullptr);
}

}  // namespace
}  // namespace fusebox
