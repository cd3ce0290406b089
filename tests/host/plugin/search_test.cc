// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "host/plugin/registry.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;

class Search : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"FUSEBOX_PLUGIN_PATH", "FUSEBOX_ADD_PLUGIN_PATH"}) unsetenv(name);
    setenv("XDG_DATA_HOME", (folder_.path() + "/data").c_str(), 1);
  }
  void TearDown() override { SetUp(); }

  // A plugin of that id; the same id may be put into several folders.
  void Put(const std::string& place, const std::string& id) {
    folder_.Write(place + "/fusebox-plugin.json", With(RunnableManifest(), "com.acme.my_op", id));
  }
  std::string At(const std::string& place) const { return folder_.path() + "/" + place; }

  // "id state why" of each plugin in order.
  static std::vector<std::string> List(const Config& config) {
    const auto registry = Registry::Create(config);
    EXPECT_TRUE(registry) << registry.error().message;
    std::vector<std::string> rows;
    if (!registry) return rows;
    for (const PluginInfo& info : (*registry)->plugins())
      rows.push_back(info.manifest.id + " " + std::string(Name(info.state)) +
                     (info.why.empty() ? "" : " " + info.why));
    return rows;
  }
  static std::string Refusal(const Config& config) {
    const auto registry = Registry::Create(config);
    return registry ? "accepted" : registry.error().message;
  }

  Folder folder_;
};

TEST_F(Search, LooksOneLevelBelowAFolderInTheOrderOfNames) {
  Put("p/b", "x.b");
  Put("p/a", "x.a");
  Put("p/c/too/deep", "x.c");
  EXPECT_THAT(List({.plugin_path = {At("p")}, .search_default_path = false}),
              ElementsAre("x.a ok", "x.b ok"));
}

TEST_F(Search, TakesAPluginsOwnFolderToo) {
  Put("p/a", "x.a");
  Put("p/b", "x.b");
  EXPECT_THAT(List({.plugin_path = {At("p/b")}, .search_default_path = false}), ElementsAre("x.b ok"));
  setenv("FUSEBOX_PLUGIN_PATH", (At("p/b") + ":" + At("p/a/")).c_str(), 1);
  EXPECT_THAT(List({}), ElementsAre("x.b ok", "x.a ok"));
}

TEST_F(Search, LetsTheFirstOfTwoCopiesWinAndShowsTheOther) {
  Put("p/one", "x.a");
  Put("q/two", "x.a");
  EXPECT_THAT(List({.plugin_path = {At("p"), At("q")}, .search_default_path = false}),
              ElementsAre("x.a ok", "x.a shadowed by " + At("p/one/fusebox-plugin.json")));
}

TEST_F(Search, AsksTheCommandLineFirstThenEnvironmentThenConfigThenTheUsersFolder) {
  Put("named", "x.named");
  Put("added/a", "x.added");
  Put("config/a", "x.config");
  Put("data/fusebox/plugins/a", "x.user");
  setenv("FUSEBOX_ADD_PLUGIN_PATH", At("added").c_str(), 1);
  const Config config{.plugins = {At("named")}, .plugin_path = {At("config")}};
  EXPECT_THAT(List(config), ElementsAre("x.named ok", "x.added ok", "x.config ok", "x.user ok"));

  setenv("FUSEBOX_PLUGIN_PATH", (At("config") + "::" + At("added")).c_str(), 1);
  EXPECT_THAT(List(config), ElementsAre("x.named ok", "x.config ok", "x.added ok"))
      << "the variable replaces the rest";
}

TEST_F(Search, NamesThePlacesItLookedInto) {
  Put("config/a", "x.config");
  const auto registry = Registry::Create({.plugin_path = {At("config"), At("gone")}});
  ASSERT_TRUE(registry) << registry.error().message;
  EXPECT_THAT((*registry)->searched(), IsSupersetOf({At("config"), At("gone") + " (no such folder)",
                                                     At("data/fusebox/plugins (no such folder)")}));
}

TEST_F(Search, NeverLooksIntoTheWorkingDirectory) {
  Put("a", "x.a");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  setenv("FUSEBOX_PLUGIN_PATH", ":", 1);
  EXPECT_THAT(List({}), ElementsAre());
  std::filesystem::current_path(before);
}

TEST_F(Search, TakesAManifestALibraryOrAFolderByName) {
  Put("one", "x.a");
  folder_.Write("one/my_op.so", "");
  folder_.Write("one/other.so", "");
  folder_.Write("one/other/other.so", "");
  for (const char* name : {"one", "one/fusebox-plugin.json", "one/my_op.so"})
    EXPECT_THAT(List({.plugins = {At(name)}, .search_default_path = false}), ElementsAre("x.a ok")) << name;
  EXPECT_THAT(Refusal({.plugins = {At("one/other.so")}}), HasSubstr("the manifest in its folder is for"));
  EXPECT_THAT(Refusal({.plugins = {At("one/other/other.so")}}),
              HasSubstr("the manifest in its folder is for"))
      << "of another platform";
  EXPECT_THAT(List({.plugins = {folder_.path()}, .search_default_path = false}), ElementsAre("x.a ok"))
      << "a folder of plugins";
}

TEST_F(Search, RefusesANamedPluginThatIsNone) {
  folder_.Write("empty/readme", "");
  folder_.Write("broken/fusebox-plugin.json", "{}");
  EXPECT_EQ(Refusal({.plugins = {At("gone")}}), "plugin " + At("gone") + ": no such file or folder");
  EXPECT_THAT(Refusal({.plugins = {At("empty")}}),
              HasSubstr("neither it nor a subfolder contains a fusebox-plugin.json"));
  EXPECT_THAT(Refusal({.plugins = {At("empty/readme")}}), HasSubstr("no fusebox-plugin.json in its folder"));
  EXPECT_THAT(Refusal({.plugins = {At("broken")}}),
              HasSubstr("broken/fusebox-plugin.json:1:1: lacks the key"));
}

TEST_F(Search, KeepsABrokenPluginOfASearchedFolderWithItsReason) {
  Put("p/good", "x.good");
  folder_.Write("p/broken/fusebox-plugin.json", "{\"abl\": 1}");
  EXPECT_THAT(
      List({.plugin_path = {At("p")}, .search_default_path = false}),
      ElementsAre(
          HasSubstr("broken/fusebox-plugin.json:1:2: abl: unknown key \"abl\"; did you mean \"abi\"?"),
          "x.good ok"));
}

TEST_F(Search, DeniesByGlobAndDenyWins) {
  Put("p/a", "com.acme.a");
  Put("p/b", "com.acme.b");
  Put("p/c", "org.other");
  const Config config{
      .plugin_path = {At("p")}, .allow = {"com.acme.*"}, .deny = {"*.b"}, .search_default_path = false};
  EXPECT_THAT(List(config), ElementsAre("com.acme.a ok", "com.acme.b denied the configuration denies \"*.b\"",
                                        "org.other denied the configuration: not in its \"allow\" list"));
}

}  // namespace
}  // namespace fusebox
