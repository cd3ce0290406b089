// SPDX-License-Identifier: Apache-2.0
// Who can replace files. One Owners answers for all plugins of a search.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "host/plugin/steps.h"
#include "tests/host/plugin/folder.h"

namespace fusebox {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class OwnersOfFiles : public testing::Test {
 protected:
  std::string Why(const std::string& path, const std::string& own) {
    const Status status = owners_.Check(path, own);
    return status ? "" : status.error().message;
  }

  Folder folder_;
  const std::string root_ = fs::path(folder_.path()).lexically_normal();
  const std::string a_ = folder_.Write("plugins/a/file", "");
  const std::string b_ = folder_.Write("plugins/b/file", "");
  Owners owners_;
};

TEST_F(OwnersOfFiles, AreCheckedForEachFileBelowAFolderThatWasLookedAt) {
  EXPECT_EQ(Why(a_, root_ + "/plugins/a"), "");
  EXPECT_EQ(Why(a_, root_ + "/plugins/a"), "");
  ASSERT_EQ(chmod(b_.c_str(), 0666), 0);
  EXPECT_THAT(Why(b_, root_ + "/plugins/b"), HasSubstr("every user can replace its code; run chmod o-w"));
  EXPECT_THAT(Why(b_, root_ + "/plugins/b"), HasSubstr("every user can replace"));
}

// A folder above a plugin may belong to another user, its own may not.
TEST_F(OwnersOfFiles, OfAPluginAreNotThoseOfTheFoldersAbove) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  const std::string plugins = root_ + "/plugins";
  constexpr uid_t kOther = 12345;
  ASSERT_EQ(chown(plugins.c_str(), kOther, static_cast<gid_t>(-1)), 0);
  EXPECT_EQ(Why(a_, plugins + "/a"), "");
  EXPECT_THAT(Why(a_, plugins), HasSubstr("user 12345 can replace its code; run chown 0 " + plugins));
  EXPECT_EQ(Why(b_, plugins + "/b"), "");
}

TEST_F(OwnersOfFiles, AreTheSameWithMoreSlashes) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files to others";
  ASSERT_EQ(chown(a_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(Why(root_ + "/plugins//a/file", root_ + "/plugins//a"), HasSubstr("user 12345 can replace"));
  EXPECT_THAT(Why(root_ + "//plugins/a///file", root_ + "/plugins/a"), HasSubstr("user 12345 can replace"));
}

TEST_F(OwnersOfFiles, AreThoseOfWhatALinkLeadsTo) {
  const std::string link = root_ + "/plugins/a/link";
  fs::create_symlink("../b/file", link);
  EXPECT_EQ(Why(link, root_ + "/plugins/a"), "");
  ASSERT_EQ(chmod(b_.c_str(), 0666), 0);
  EXPECT_THAT(Owners().Check(link, root_ + "/plugins/a").error().message,
              HasSubstr("every user can replace"));
}

TEST_F(OwnersOfFiles, OfMissingFilesAreNotAsked) {
  EXPECT_EQ(Why(root_ + "/none/file", root_ + "/none"), "");
  folder_.Write("none/file", "");
  ASSERT_EQ(chmod((root_ + "/none/file").c_str(), 0666), 0);
  EXPECT_THAT(Why(root_ + "/none/file", root_ + "/none"), HasSubstr("every user can replace"));
}

}  // namespace
}  // namespace fusebox
