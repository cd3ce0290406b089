// SPDX-License-Identifier: Apache-2.0
// Services of plugins for plugins: who is loaded for whom, when, and what comes of it where that does not
// work out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "host/graph/view.h"
#include "host/plugin/registry.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Registry> With(const std::vector<std::string>& plugins, Config config = {}) {
  config.search_default_path = false;
  for (const std::string& name : plugins)
    config.plugins.push_back(std::string(FUSEBOX_SERVICES) + "/" + name);
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

const LoadedPlugin* Load(Registry& registry, const std::string& name) {
  const auto kernels = registry.KernelsFor(FBX_OP_CUSTOM, "test." + name, 0);
  return kernels.empty() ? nullptr : kernels[0].plugin;
}

// What the plugin finds under the id: the number, 0 for nothing; -1: the plugin cannot be loaded.
int Ask(Registry& registry, const std::string& name, std::string_view id,
        const Services* services = nullptr) {
  const LoadedPlugin* const plugin = Load(registry, name);
  if (plugin == nullptr) return -1;
  HostCall call(*plugin, services);
  const void* const found = call.abi()->get_extension(call.abi(), AsAbi(id));
  return found == nullptr ? 0 : *static_cast<const int*>(found);
}

// What the plugin found while it was loaded.
int FoundInLoad(Registry& registry, const std::string& name) {
  const LoadedPlugin* const plugin = Load(registry, name);
  if (plugin == nullptr) return -1;
  return *static_cast<const int*>(plugin->abi()->get_extension(nullptr, AsAbi("test." + name + "/found")));
}

PluginInfo InfoOf(const Registry& registry, const std::string& name) {
  for (const PluginInfo& info : registry.plugins()) {
    if (info.manifest.id == "test." + name) return info;
  }
  return {};
}

TEST(Extensions, OfOtherPluginsAreFoundInAnyOrder) {
  for (const std::vector<std::string>& order : {std::vector<std::string>{"asks", "one"}, {"one", "asks"}}) {
    const auto registry = With(order);
    EXPECT_NE(Load(*registry, "asks"), nullptr);
    EXPECT_FALSE(InfoOf(*registry, "one").loaded) << "before anybody asks";
    EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 1);
    EXPECT_TRUE(InfoOf(*registry, "one").loaded);
    EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 1);
  }
}

TEST(Extensions, ThatArePartOfBeingLoadedAreFoundThen) {
  const auto registry = With({"needs", "asks_early", "one"});
  EXPECT_NE(Load(*registry, "needs"), nullptr);
  EXPECT_TRUE(InfoOf(*registry, "one").loaded) << "the manifest says that it must be there";
  EXPECT_EQ(Ask(*registry, "needs", "test.number/1"), 1);
  EXPECT_EQ(FoundInLoad(*registry, "asks_early"), 1);
}

TEST(Extensions, ThatNobodyHasAreNull) {
  const auto registry = With({"asks", "needs"});
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 0);
  EXPECT_EQ(Ask(*registry, "needs", "test.number/1"), -1);
  EXPECT_EQ(InfoOf(*registry, "needs").why,
            "it requires extension test.number/1, which neither the host nor a plugin here provides; install "
            "a plugin "
            "that provides it, or end the id with ? in \"requires\"");
}

TEST(Extensions, ThatTheManifestDoesNotNameAreNull) {
  const auto registry = With({"asks_not", "asks", "one"});
  EXPECT_EQ(Ask(*registry, "asks_not", "test.number/1"), 0);
  EXPECT_EQ(Ask(*registry, "asks", "test.number/2"), 0);
  EXPECT_FALSE(InfoOf(*registry, "one").loaded);
}

TEST(Extensions, OfAPluginThatDoesNotLoadAreNullWithOneNotice) {
  const auto registry = With({"asks", "asks_early", "needs", "fails"});
  testing::internal::CaptureStderr();
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 0);
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 0);
  EXPECT_EQ(Ask(*registry, "asks_early", "test.number/1"), 0);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("test.asks: it goes without extension test.number/1: plugin test.fails cannot be "
                        "used: load failed: plugin test.fails: TIRED: it does not feel like it"));
  EXPECT_EQ(said.find("goes without"), said.rfind("goes without")) << said;
  EXPECT_EQ(Ask(*registry, "needs", "test.number/1"), -1);
  EXPECT_THAT(InfoOf(*registry, "needs").why,
              HasSubstr("it requires extension test.number/1: plugin test.fails is broken: load failed"));
}

// What is said on the way to an answer of the second plugin, asked for twice.
std::string SaidOfTheNext(Registry& registry) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(Ask(registry, "asks", "test.number/1"), 2);
  EXPECT_EQ(Ask(registry, "asks", "test.number/1"), 2);
  return testing::internal::GetCapturedStderr();
}

TEST(Extensions, OfAPluginThatDoesNotLoadComeFromTheNextWithOneNotice) {
  EXPECT_EQ(
      SaidOfTheNext(*With({"fails", "asks", "two"})),
      "W plugin: test.asks: it has extension test.number/1 of test.two: plugin test.fails cannot be used: "
      "load failed: plugin test.fails: TIRED: it does not feel like it\n");
  EXPECT_EQ(
      SaidOfTheNext(*With({"asks", "one", "two"}, {.deny = {"test.one"}})),
      "W plugin: test.asks: it has extension test.number/1 of test.two: plugin test.one cannot be used: "
      "the configuration denies \"test.one\"\n");
  EXPECT_EQ(SaidOfTheNext(*With({"asks", "one", "two"}, {.prefer = {{"test.number/1", {"test.two"}}}})), "");
}

TEST(Extensions, ThatThePolicyDeniesAreNull) {
  const auto registry = With({"asks", "needs", "one"}, {.deny = {"test.one"}});
  testing::internal::CaptureStderr();
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("test.asks: it goes without extension test.number/1: plugin test.one cannot be used: "
                        "the configuration denies \"test.one\""));
  EXPECT_FALSE(InfoOf(*registry, "one").loaded);
  EXPECT_EQ(Ask(*registry, "needs", "test.number/1"), -1);
  EXPECT_EQ(InfoOf(*registry, "needs").why,
            "it requires extension test.number/1: plugin test.one is denied: the configuration denies "
            "\"test.one\"");
  EXPECT_EQ(Ask(*With({"asks", "one", "two"}, {.deny = {"test.one"}}), "asks", "test.number/1"), 2);
}

TEST(Extensions, OfSeveralPluginsComeFromThePreferredOne) {
  EXPECT_EQ(Ask(*With({"asks", "one", "two"}), "asks", "test.number/1"), 1);
  EXPECT_EQ(Ask(*With({"asks", "two", "one"}), "asks", "test.number/1"), 2) << "in search order";
  EXPECT_EQ(Ask(*With({"asks", "one", "two"}, {.prefer = {{"test.number/1", {"test.two"}}}}), "asks",
                "test.number/1"),
            2);
}

TEST(Extensions, ThatAManifestPromisesInVainBreakThePlugin) {
  const auto registry = With({"asks", "empty"});
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), 0);
  EXPECT_EQ(InfoOf(*registry, "empty").why,
            "the manifest lists extension test.number/1, but the library has none; return it from "
            "get_extension, or remove it from the manifest");
}

TEST(Extensions, ThatTwoPluginsNeedOfEachOtherAreRefused) {
  const auto registry = With({"ring_a", "ring_b"});
  EXPECT_EQ(Load(*registry, "ring_a"), nullptr);
  EXPECT_EQ(Load(*registry, "ring_b"), nullptr);
  EXPECT_EQ(InfoOf(*registry, "ring_b").why,
            "it requires extension test.a/1: plugin test.ring_a requires this one in turn");
  EXPECT_THAT(InfoOf(*registry, "ring_a").why, HasSubstr("plugin test.ring_b is broken"));
}

TEST(Extensions, MayLeadInACircleWhereOneCanWait) {
  for (const char* first : {"loose_a", "loose_b"}) {
    const auto registry = With({"loose_a", "loose_b"});
    EXPECT_NE(Load(*registry, first), nullptr);
    EXPECT_EQ(Ask(*registry, "loose_a", "test.d/1"), 13) << first;
    EXPECT_EQ(Ask(*registry, "loose_b", "test.c/1"), 12) << first;
  }
}

TEST(Extensions, AskedForInACircleOfLoadingComeLater) {
  const auto registry = With({"eager_a", "eager_b"});
  EXPECT_EQ(FoundInLoad(*registry, "eager_a"), 15);
  EXPECT_EQ(FoundInLoad(*registry, "eager_b"), 0) << "the other one was not ready";
  EXPECT_EQ(Ask(*registry, "eager_b", "test.e/1"), 14);
}

TEST(Extensions, MayNotBeWorthLoadingAPlugin) {
  struct Reluctant : Services {
    const void* Find(std::string_view) const override { return nullptr; }
    bool MayLoad(const Manifest&) const override { return willing; }
    bool willing = false;
  } services;
  const auto registry = With({"asks", "one"});
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1", &services), 0);
  EXPECT_FALSE(InfoOf(*registry, "one").loaded);
  services.willing = true;
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1", &services), 1) << "elsewhere it is";
  services.willing = false;
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1", &services), 1) << "it is there now";
}

TEST(Extensions, AreFoundByManyThreadsAtOnce) {
  for (int round = 0; round < 20; ++round) {
    const auto registry = With({"asks", "needs", "one", "loose_a", "loose_b"});
    std::vector<std::thread> threads;
    std::atomic<int> right = 0;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        right += Ask(*registry, t % 2 ? "asks" : "needs", "test.number/1") == 1;
        right += Ask(*registry, t % 2 ? "loose_a" : "loose_b", t % 2 ? "test.d/1" : "test.c/1") == 12 + t % 2;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(right, 8);
  }
}

// Plugins that are linked in: no manifest says what they have.
std::vector<std::string> unloaded;
const int kBuiltInNumber = 7;

const fbx_kernel kKernel = [] {
  fbx_kernel kernel{};
  kernel.head = FBX_HEAD(fbx_kernel);
  kernel.kind = FBX_OP_CUSTOM;
  kernel.op = {"test.built_in", 13};
  kernel.infer = [](const fbx_host*, void*, const fbx_node*, const fbx_infer*) noexcept -> fbx_status {
    return FBX_OK;
  };
  kernel.invoke = [](const fbx_host*, void*, const void*, void*, const fbx_node*) noexcept -> fbx_status {
    return FBX_OK;
  };
  return kernel;
}();
const fbx_kernel* const kKernels[] = {&kKernel};

template <int I>
constexpr fbx_entry kBuiltIn = {FBX_ENTRY_MAGIC,
                                1,
                                0,
                                sizeof(fbx_entry),
                                FBX_BUILD_FLAGS,
                                0,
                                {"test", 4},
                                [](const fbx_host*, const fbx_plugin** out) noexcept -> fbx_status {
                                  static const std::string id = "built.in" + std::to_string(I);
                                  static fbx_plugin plugin{};
                                  plugin.head = FBX_HEAD(fbx_plugin);
                                  plugin.id = AsAbi(id);
                                  plugin.version = AsAbi("1.0.0");
                                  if (I == 1) {
                                    plugin.kernel_count = 1;
                                    plugin.kernels = kKernels;
                                  }
                                  if (I == 2) {
                                    plugin.user = const_cast<int*>(&kBuiltInNumber);
                                    plugin.get_extension = [](void* user,
                                                              fbx_str asked) noexcept -> const void* {
                                      return FromAbi(asked) == "test.number/1" ? user : nullptr;
                                    };
                                  }
                                  *out = &plugin;
                                  return FBX_OK;
                                },
                                []() noexcept { unloaded.push_back(std::to_string(I)); }};

TEST(Extensions, OfPluginsThatAreLinkedInNeedNoManifest) {
  Config config{.search_default_path = false};
  config.plugins = {std::string(FUSEBOX_SERVICES) + "/asks"};
  const fbx_entry* const entries[] = {&kBuiltIn<2>};
  const auto registry = *Registry::Create(config, entries);
  EXPECT_EQ(Ask(*registry, "asks", "test.number/1"), kBuiltInNumber);
}

TEST(Extensions, KeepTheirPluginUntilThoseThatUseThemAreUnloaded) {
  const fbx_entry* const entries[] = {&kBuiltIn<1>, &kBuiltIn<2>, &kBuiltIn<3>};
  unloaded.clear();
  {
    const auto registry = *Registry::Create({.search_default_path = false}, entries);
  }
  EXPECT_THAT(unloaded, ElementsAre("3", "2", "1")) << "last loaded, first unloaded";

  unloaded.clear();
  {
    const auto registry = *Registry::Create({.search_default_path = false}, entries);
    EXPECT_EQ(Ask(*registry, "built_in", "test.number/1"), kBuiltInNumber);
  }
  EXPECT_THAT(unloaded, ElementsAre("3", "1", "2")) << "the first uses what the second provides";
}

}  // namespace
}  // namespace fusebox
