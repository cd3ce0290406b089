// SPDX-License-Identifier: Apache-2.0
// Manifests, signatures, policies and configurations that are no regular files, too large, or of somebody
// else.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "host/plugin/steps.h"
#include "tests/host/trust/plugins.h"

namespace fusebox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uid_t kSomebody = 12345;

class ShortFiles : public Plugins {
 protected:
  void SetUp() override {
    Plugins::SetUp();
    fs::create_directories(Root() + "/config/fusebox");
  }
  std::string Policy() const { return Root() + "/config/fusebox/policy.json"; }
  // Replaces a file by a pipe, a device, a folder or a sparse file.
  void Place(const std::string& kind, const std::string& path) const {
    fs::remove(path);
    if (kind == "pipe") {
      EXPECT_EQ(mkfifo(path.c_str(), 0644), 0);
    }
    if (kind == "device") fs::create_symlink("/dev/zero", path);
    if (kind == "folder") fs::create_directory(path);
    if (kind != "sparse") return;
    Write(path, "{}");
    fs::resize_file(path, uintmax_t{40} << 30);
  }
  static std::string Why(const std::string& kind) {
    if (kind == "sparse") return "has 42949672960 bytes, more than 1 MB";
    return kind == "folder" ? "is a folder" : "is not a regular file";
  }
  // "id state why" of the plugins that were found.
  static std::vector<std::string> List(const std::string& folder) {
    const auto registry = Registry::Create({.plugin_path = {folder}, .search_default_path = false});
    if (!registry) return {registry.error().message};
    std::vector<std::string> rows;
    for (const PluginInfo& info : (*registry)->plugins())
      rows.push_back(info.manifest.id + " " + std::string(Name(info.state)) + " " + info.why);
    return rows;
  }
};

TEST_F(ShortFiles, AreTheOnlyOnesThatAreRead) {
  const std::string plugin = Copy("null"), config = Root() + "/fusebox.json";
  const std::string key(60, 'A');
  for (const std::string kind : {"pipe", "device", "sparse", "folder"}) {
    Place(kind, config);
    EXPECT_THAT(ReadConfig(config).error().message, HasSubstr(config + ": " + Why(kind)));
    Place(kind, Policy());
    EXPECT_THAT(Load(plugin),
                testing::AllOf(HasSubstr(Policy() + ": " + Why(kind)),
                               HasSubstr("; no plugin runs under a policy that cannot be read: make it "
                                         "a file that you can read (chmod +r), or remove it")));
    fs::remove(Policy());
    Place(kind, Manifest(plugin) + ".sig");
    EXPECT_THAT(Load(plugin, {.require_signed = {key}}),
                HasSubstr("it is not signed, which \"require_signed\" of the configuration demands (" +
                          Manifest(plugin) + ".sig: " + Why(kind)));
  }
  for (const std::string kind : {"pipe", "device", "sparse", "folder"}) {
    Place(kind, Manifest(plugin));
    EXPECT_THAT(List(Root() + "/plugins"),
                ElementsAre(HasSubstr("null broken " + Manifest(plugin) + ": " + Why(kind))));
  }
  EXPECT_TRUE(ReadShortFile(folder_.Write("short", std::string(1'000'000, ' '))));
  EXPECT_FALSE(ReadShortFile(folder_.Write("short", std::string(1'000'001, ' '))));
}

// Whatever somebody puts into a folder that all can write to, their plugin alone is not used.
TEST_F(ShortFiles, OfSomebodyElseAreNotRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  Copy("null");
  const std::string shared = Root() + "/plugins", other = shared + "/other";
  ASSERT_EQ(chmod(shared.c_str(), 01777), 0);
  fs::create_directory(other);
  ASSERT_EQ(chown(other.c_str(), kSomebody, kSomebody), 0);
  for (const std::string kind : {"pipe", "device", "sparse"}) {
    Place(kind, Manifest(other));
    ASSERT_EQ(lchown(Manifest(other).c_str(), kSomebody, kSomebody), 0);
    EXPECT_THAT(List(shared),
                ElementsAre("fusebox.null ok ",
                            "other broken user 12345 can replace its code; run chown 0 " + other));
  }
  Place("pipe", Manifest(shared));
  ASSERT_EQ(chown(Manifest(shared).c_str(), kSomebody, kSomebody), 0);
  EXPECT_THAT(List(shared), ElementsAre(HasSubstr("plugins broken user 12345 can replace its code"),
                                        "fusebox.null ok ", HasSubstr("other broken")));
}

TEST_F(ShortFiles, APolicyBelongsToRootOrTheUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  Write(Policy(), "{}");
  ASSERT_EQ(chown(Policy().c_str(), kSomebody, 0), 0);
  EXPECT_EQ(Load(Copy("null")), Policy() + ": user 12345 can replace this policy; run chown 0 " + Policy());
  ASSERT_EQ(chown(Policy().c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(Policy().c_str(), 0666), 0);
  EXPECT_THAT(Load(Root() + "/plugins/null"),
              HasSubstr("every user can replace this policy; run chmod o-w "));
}

TEST_F(ShortFiles, APolicyThatALinkHidesIsAnError) {
  const std::string plugin = Copy("null");
  EXPECT_EQ(Load(plugin), "ok");
  fs::create_symlink("gone.json", Policy());
  EXPECT_THAT(Load(plugin),
              HasSubstr(Policy() + ": No such file or directory; no plugin runs under a policy"));
  EXPECT_THAT(Load(plugin), HasSubstr("or set XDG_CONFIG_HOME to another folder"));
  Write(Root() + "/config/fusebox/gone.json", "{}");
  EXPECT_EQ(Load(plugin), "ok");
  fs::remove_all(Root() + "/config");
  EXPECT_EQ(Load(plugin), "ok");
  fs::create_symlink("gone", Root() + "/config");
  EXPECT_THAT(Load(plugin), HasSubstr(Policy() + ": No such file or directory"));
  fs::remove(Root() + "/config");
  Write(Root() + "/config", "a file");  // like HOME=/dev/null
  EXPECT_EQ(Load(plugin), "ok");
}

TEST_F(ShortFiles, AnUnreadablePolicyIsAnErrorWithARemedy) {
  const std::string plugin = Copy("null");
  Write(Policy(), "{}");
  const uid_t user = geteuid();
  ASSERT_EQ(chmod(Policy().c_str(), 0), 0);
  ASSERT_EQ(seteuid(user == 0 ? kSomebody : user), 0);
  const std::string why = Load(plugin);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_THAT(why,
              HasSubstr(Policy() + ": Permission denied; no plugin runs under a policy that cannot be read: "
                                   "make it a file that you can read (chmod +r), or remove it"));
}

}  // namespace
}  // namespace fusebox
