// SPDX-License-Identifier: Apache-2.0
// Plugins that a program adds at run time.
#include <gmock/gmock.h>

#include "host/graph/view.h"
#include "host/plugin/registry.h"
#include "tests/host/plugin/linked.h"

namespace fusebox {
namespace {

using testing::HasSubstr;

constexpr char kOneStated[] = R"({
  "manifest_version": "1.0",
  "plugin": {"id": "x.one", "version": "1.2.3", "namespace": "one"},
  "abi": {"major": 1, "min_minor": 0},
  "libraries": [{"platform": "linux-aarch64", "path": "nowhere.so"}],
  "provides": {
    "rules": [{"id": "one.any", "implements": ["lstm_*"], "emits": []},
              {"id": "one.better", "implements": ["lstm_*"], "versions": "2-3", "emits": []}],
    "ops": [{"custom": "my.op", "options_schema": {"type": "object", "required": ["size"]}}]},
  "options_schema": {"type": "object", "additionalProperties": false,
                     "properties": {"denormals": {"enum": ["keep", "flush"], "default": "keep"}}}
})";

std::shared_ptr<Registry> Empty(Config config = {}) {
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

const PluginInfo* InfoOf(const std::vector<PluginInfo>& infos, std::string_view id) {
  for (const PluginInfo& info : infos) {
    if (info.manifest.id == id) return &info;
  }
  return nullptr;
}

TEST(RegistryAdd, KernelsAndRulesAreThereFromThenOn) {
  const auto registry = Empty();
  const std::vector<KernelRef>& before = registry->KernelsOf(FBX_OP_CUSTOM, "my.op");
  EXPECT_TRUE(before.empty());
  const uint64_t number = registry->number();
  ASSERT_TRUE(registry->Add(linked::kOne));
  EXPECT_NE(registry->number(), number);
  EXPECT_NE(registry->number(), Empty()->number());
  EXPECT_TRUE(before.empty()) << "lists that are in use do not change";
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1).size(), 1u);
  EXPECT_EQ(registry->RulesFor("lstm_5f", 0, {})->size(), 2u);
  ASSERT_TRUE(registry->Add(linked::kTwo));
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1).size(), 2u);
}

TEST(RegistryAdd, TheManifestHasDefaultsAndSchemas) {
  const auto registry = Empty();
  const Status added = registry->Add(linked::kOne, kOneStated);
  ASSERT_TRUE(added) << added.error().message;
  const auto kernels = registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1);
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].plugin->options().str("denormals", ""), "keep");
  Node node;
  node.op = Op::kCustom;
  node.name = "my.op";
  EXPECT_THAT(registry->CheckOptions(node).error().message, HasSubstr("size"));
  const auto infos = registry->plugins();
  const PluginInfo* const info = InfoOf(infos, "x.one");
  ASSERT_NE(info, nullptr);
  EXPECT_TRUE(info->built_in);
  EXPECT_TRUE(info->loaded);
}

TEST(RegistryAdd, RefusesAManifestOfAnotherPlugin) {
  const auto registry = Empty();
  const Status added = registry->Add(linked::kTwo, kOneStated);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message, HasSubstr("built-in plugin: "));
  EXPECT_THAT(added.error().message, HasSubstr("x.two"));
  const auto infos = registry->plugins();
  EXPECT_EQ(InfoOf(infos, "x.one")->state, PluginInfo::State::kBroken);
  EXPECT_THAT(registry->Add(linked::kTwo, "{").error().message, HasSubstr("built-in plugin: built in:1:"));
}

TEST(RegistryAdd, RefusesTheSamePluginTwice) {
  const auto registry = Empty();
  ASSERT_TRUE(registry->Add(linked::kOne));
  EXPECT_EQ(registry->Add(linked::kOne).error().message,
            "built-in plugin x.one: a plugin with this id is already loaded (built in)");
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1).size(), 1u);
}

TEST(RegistryAdd, ObeysThePolicy) {
  const auto registry = Empty({.deny = {"x.*"}});
  ASSERT_TRUE(registry->Add(linked::kOne));
  const auto infos = registry->plugins();
  EXPECT_EQ(InfoOf(infos, "x.one")->state, PluginInfo::State::kDenied);
  EXPECT_TRUE(registry->KernelsFor(FBX_OP_CUSTOM, "my.op", 1).empty());
}

}  // namespace
}  // namespace fusebox
