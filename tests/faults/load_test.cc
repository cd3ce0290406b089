// SPDX-License-Identifier: Apache-2.0
// Plugins that must not be used: each is refused with its name and the reason, and those beside it keep
// working.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "host/graph/view.h"
#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

std::shared_ptr<Registry> Open(Config config) {
  config.search_default_path = false;
  auto registry = Registry::Create(config);
  EXPECT_TRUE(registry) << registry.error().message;
  return registry ? *registry : nullptr;
}

PluginInfo Find(const Registry& registry, const std::string& id) {
  for (const PluginInfo& info : registry.plugins()) {
    if (info.manifest.id == id) return info;
  }
  ADD_FAILURE() << "no plugin " << id;
  return {};
}

struct Fault {
  std::string name, reason;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class FaultyPlugin : public testing::TestWithParam<Fault> {};

TEST_P(FaultyPlugin, IsRefusedWithItsReasonAndTheOthersWork) {
  const Fault& fault = GetParam();
  const auto registry = Open({.plugin_path = {FUSEBOX_FAULTY}});
  ASSERT_TRUE(registry->LoadAll());
  const PluginInfo info = Find(*registry, "fault." + fault.name);
  EXPECT_EQ(Name(info.state), "broken");
  EXPECT_THAT(info.why, HasSubstr(fault.reason));
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "fault." + fault.name, 0).size(), 0u);
  EXPECT_THAT(registry->WhoProvides(FBX_OP_CUSTOM, "fault." + fault.name)[0],
              MatchesRegex("fault\\." + fault.name + " 1\\.0\\.0 \\(broken: .*"));

  EXPECT_EQ(Name(Find(*registry, "fault.good").state), "ok");
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "fault.good", 0).size(), 1u);
  EXPECT_EQ(registry->RulesFor("fault.good", 1, {})->size(), 1u);
}

TEST_P(FaultyPlugin, IsAWarningOnceWhenItIsNeeded) {
  const std::string name = "fault." + GetParam().name;
  testing::internal::CaptureStderr();
  const auto registry = Open({.plugin_path = {FUSEBOX_FAULTY}});
  (void)registry->KernelsFor(FBX_OP_CUSTOM, name, 0);
  (void)registry->RulesFor(name, 1, {});
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, MatchesRegex("W loader: plugin " + name + " \\(.*\\) is broken: [^\n]*\n"));
  EXPECT_THAT(said, HasSubstr(GetParam().reason));
}

TEST_P(FaultyPlugin, IsAnErrorWhenItWasNamed) {
  const Fault& fault = GetParam();
  const auto registry = Open({.plugins = {std::string(FUSEBOX_FAULTY) + "/" + fault.name}});
  const Status status = registry->LoadNamed();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("fault." + fault.name));
  EXPECT_THAT(status.error().message, HasSubstr(fault.reason));
}

INSTANTIATE_TEST_SUITE_P(
    All, FaultyPlugin,
    testing::ValuesIn(std::vector<Fault>{
        {"no_entry", "undefined symbol: fusebox_entry_v1"},
        {"wrong_magic", "wrong magic number"},
        {"newer_major", "built for plugin ABI 2, this host has 1"},
        {"newer_minor", "needs a host with plugin ABI 1.900"},
        {"short_entry", "fusebox_entry_v1 is 16 bytes long"},
        {"short_plugin", "fbx_plugin is 24 bytes long"},
        {"short_rule", "fbx_rule 0: fbx_rule is 32 bytes long"},
        {"short_tolerance", "fbx_rule 0: fbx_tolerance is 16 bytes long"},
        {"short_kernel", "fbx_kernel 0: fbx_kernel is 40 bytes long"},
        {"no_invoke", "infer or invoke is null"},
        {"many_rules", "a table of 4000000000 fbx_rule cannot be right"},
        {"no_rules", "the manifest lists rule fault.no_rules.rule, but the library has none"},
        {"foreign_sanitizer", "built with the memory sanitizer, this host is not"},
#ifdef FUSEBOX_SANITIZED_FAULT
        {"sanitized", "built with the address sanitizer, this host is not"},
#endif
        {"failing_load", "LICENCE: the licence server is down"},
        {"empty_load", "load succeeded, but returned no plugin"},
        {"other_id", "the manifest has id fault.other_id, the library has fault.somebody.else"},
        {"other_version", "the manifest has version 1.0.0, the library has 9.9.9"},
        {"other_op", "the manifest lists a kernel for custom fault.other_op, but the library has none"},
        {"missing_library", "libfault_gone.so: cannot open shared object file: No such file or directory"},
    }),
    [](const auto& info) { return info.param.name; });

// A plugin folder with the sound plugin's manifest and the given bytes as its library.
class Library : public testing::Test {
 protected:
  std::string Why(const std::string& bytes) {
    folder_.Write("good/fusebox-plugin.json",
                  Slurp(std::string(FUSEBOX_FAULTY) + "/good/fusebox-plugin.json"));
    folder_.Write("good/good.so", bytes);
    const auto registry = Open({.plugin_path = {folder_.path()}});
    EXPECT_TRUE(registry->LoadAll());
    return Find(*registry, "fault.good").why;
  }
  const std::string sound_ = Slurp(std::string(FUSEBOX_FAULTY) + "/good/good.so");
  Folder folder_;
};

TEST_F(Library, ForAnotherMachineIsNamedSo) {
  std::string foreign = sound_;
  foreign[18] = static_cast<char>(0xF3);  // e_machine: RISC-V
  foreign[19] = 0;
  EXPECT_THAT(Why(foreign), HasSubstr("(the library is for riscv)"));
}

TEST_F(Library, ThatIsCutOffIsRefused) {
  const std::string size = std::to_string(sound_.size());
  for (const size_t left : {size_t{4000}, sound_.size() / 2, sound_.size() - 1})
    EXPECT_THAT(Why(sound_.substr(0, left)), MatchesRegex("it is truncated: it has " + std::to_string(left) +
                                                          " bytes and should have at least [0-9]+"));
  EXPECT_THAT(Why(sound_.substr(0, 100)), HasSubstr("it is truncated: it has 100 bytes"));
}

TEST_F(Library, ThatIsGarbageIsRefused) {
  EXPECT_THAT(Why("this is no library"), HasSubstr("file too short"));
}
TEST_F(Library, OfTextIsRefused) {
  EXPECT_THAT(Why(std::string(4096, 'x')), HasSubstr("invalid ELF header"));
}
TEST_F(Library, ThatIsEmptyIsRefused) { EXPECT_THAT(Why(""), HasSubstr("file too short")); }

TEST_F(Library, ThatIsNotThereIsReportedInTheSystemsWords) {
  folder_.Write("good/fusebox-plugin.json", Slurp(std::string(FUSEBOX_FAULTY) + "/good/fusebox-plugin.json"));
  const auto registry = Open({.plugins = {folder_.path() + "/good"}});
  const Status status = registry->LoadNamed();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              HasSubstr("good/good.so: cannot open shared object file: No such file or directory"));
}

TEST_F(Library, IsOpenedOnlyWhenItIsAskedFor) {
  const auto registry = Open({.plugin_path = {FUSEBOX_FAULTY}});
  EXPECT_FALSE(Find(*registry, "fault.good").loaded);
  EXPECT_FALSE(registry->WhoProvides(FBX_OP_CUSTOM, "fault.good").empty());
  EXPECT_FALSE(Find(*registry, "fault.good").loaded) << "listing loads nothing";
  EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "fault.good", 0).size(), 1u);
  EXPECT_TRUE(Find(*registry, "fault.good").loaded);
  EXPECT_FALSE(Find(*registry, "fault.throws").loaded);
}

TEST_F(Library, LoadsInAMillisecond) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    // Under a new name each time: what is open stays open.
    const std::string place = "p" + std::to_string(i) + "/good/";
    folder_.Write(place + "fusebox-plugin.json",
                  Slurp(std::string(FUSEBOX_FAULTY) + "/good/fusebox-plugin.json"));
    folder_.Write(place + "good.so", sound_);
    const auto registry = Open({.plugin_path = {folder_.path() + "/p" + std::to_string(i)}});
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(registry->KernelsFor(FBX_OP_CUSTOM, "fault.good", 0).size(), 1u);
    best = std::min(
        best, std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  RecordProperty("milliseconds", std::to_string(best));
  std::cout << "plugin load: " << best << " ms\n";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(best, 1.0);
#endif
}

TEST(OwnPlugins, AgreeWithTheirManifests) {
  const auto registry = Open({.plugin_path = {FUSEBOX_BUILD_DIR "/plugins"}});
  ASSERT_TRUE(registry->LoadAll());
  EXPECT_FALSE(registry->plugins().empty());
  for (const PluginInfo& info : registry->plugins())
    EXPECT_EQ(Name(info.state), "ok") << info.manifest.path << ": " << info.why;
}

class Throwing : public testing::Test {
 protected:
  Throwing() : function_("f") {
    node_ = &function_.AddNode(Op::kCustom, {function_.AddInput(Type{DType::kF32, {1}})},
                               {Type{DType::kF32, {1}}});
    registry_ = Open({.plugin_path = {FUSEBOX_FAULTY}});
  }
  // Calls the kernel that `name` names; the diagnostics of the call go into the message.
  template <class F>
  std::string Call(const std::string& name, F&& call) {
    const auto kernels = registry_->KernelsFor(FBX_OP_CUSTOM, name, 0);
    if (kernels.size() != 1) return "no kernel";
    node_->name = name;
    const NodeView view(function_, *node_);
    HostCall host(*kernels[0].plugin, nullptr);
    const Status status = host.Check(call(*kernels[0].kernel, host.abi(), view.abi()));
    return status ? "ok" : status.error().message;
  }
  Function function_;
  Node* node_;
  std::shared_ptr<Registry> registry_;
};

TEST_F(Throwing, BecomesAStatusWithTheReason) {
  EXPECT_EQ(
      Call("fault.throws", [](auto& k, auto* host, auto* node) { return k.supports(host, k.user, node); }),
      "plugin fault.throws: EXCEPTION: supports threw");
  EXPECT_EQ(Call("fault.throws",
                 [](auto& k, auto* host, auto* node) { return k.infer(host, k.user, node, nullptr); }),
            "plugin fault.throws: attribute is missing (attr a name that is not there)");
  void* instance = nullptr;
  EXPECT_EQ(Call("fault.throws",
                 [&](auto& k, auto* host, auto* node) { return k.init(host, k.user, node, &instance); }),
            "plugin fault.throws: out of memory");
  EXPECT_EQ(
      Call("fault.throws.late",
           [](auto& k, auto* host, auto* node) { return k.invoke(host, k.user, nullptr, nullptr, node); }),
      "plugin fault.throws: EXCEPTION: an exception of unknown type");
}

}  // namespace
}  // namespace fusebox
