// SPDX-License-Identifier: Apache-2.0
// A path that was meant otherwise: what a cache has not made, it neither moves, nor replaces, nor removes.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "plugins/xnnpack/cache/inspect.h"
#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class Foreign : public StoreTest {
 protected:
  // Files of somebody's in a directory, all of them older than what is swept for its age.
  void Fill(const std::string& directory, const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      const fs::path at = directory + "/" + file;
      fs::create_directories(at.parent_path());
      fs::permissions(at.parent_path(), fs::perms(0700));
      WriteFile(at, file);
      fs::last_write_time(at, fs::file_time_type::clock::now() - std::chrono::hours(24 * 365));
    }
  }
  static void Untouched(const std::string& directory, const std::vector<std::string>& files) {
    for (const std::string& file : files) EXPECT_EQ(ReadFile(directory + "/" + file), file) << file;
  }
};

// A model given as its own cache, for one.
TEST_F(Foreign, AFileThatIsNoCacheIsLeftAlone) {
  for (const std::string& content : {std::string("diary"), std::string(10'000, 'x')}) {
    WriteFile(file_path(), content);
    {
      const auto store = Store::Open(In(file_path()));
      EXPECT_TRUE(Pack(*store, 0, kSome));
      store->Flush();
      EXPECT_EQ(store->mode(), Mode::kAnonymous);
      EXPECT_EQ(store->stats().fallback_reason, "no-cache") << NoteCodes(*store);
    }
    EXPECT_EQ(ReadFile(file_path()), content);
    EXPECT_THAT(FilesBelow(directory_), ElementsAre(file_path())) << "nothing was made beside it";
    EXPECT_FALSE(fs::exists(file_path() + ".d"));
  }
}

TEST_F(Foreign, AnEmptyFileBecomesACache) {
  WriteFile(file_path(), "");  // as mktemp leaves it
  EXPECT_EQ(Start(In(file_path()), 0, kSome), 0);
  EXPECT_EQ(Start(In(file_path()), 0, kSome), kSome);
}

const std::vector<std::string> kTheirs = {
    "notes.tmp",    ".new-year",  "lock.txt",        "tmp/thesis.docx",  "tmp/a.tmp",      "state/app.db",
    "state/a.used", "state/a.ok", "models/net.fbmm", "segments/old.bad", "segments/video", "models/.new-one"};

TEST_F(Foreign, FilesOfOthersInADirectoryStay) {
  Fill(path(), kTheirs);
  EXPECT_EQ(Start(In(path()), 0, kSome), 0);
  EXPECT_EQ(Start(In(path()), 0, kSome, 2), 0);  // what it replaces is collected
  EXPECT_EQ(Start(In(path()), 0, kSome, 2), kSome);
  Untouched(path(), kTheirs);
  std::vector<Removed> removed;
  Note why;
  ASSERT_TRUE(CollectGarbage(path(), 1, removed, why)) << why.message;
  Untouched(path(), kTheirs);
  ASSERT_TRUE(RemoveStore(path(), removed, why)) << why.message;
  Untouched(path(), kTheirs);
  EXPECT_EQ(FilesBelow(path()).size(), kTheirs.size()) << "of the cache nothing is left";
}

TEST_F(Foreign, ASecretOfAnotherKindIsNotReplaced) {
  Fill(path(), {"secret"});
  WriteFile(path() + "/secret", "hunter2");
  {
    const auto store = Store::Open(In(path()));
    EXPECT_TRUE(Pack(*store, 0, kSome));
    EXPECT_EQ(store->stats().fallback_reason, "no-cache") << NoteCodes(*store);
  }
  EXPECT_EQ(ReadFile(path() + "/secret"), "hunter2");
  WriteFile(path() + "/secret", "");  // as a power cut may leave it
  EXPECT_EQ(Start(In(path()), 0, kSome), 0);
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
}

TEST_F(Foreign, ADirectoryWithSegmentsOfAnotherKindIsNoCache) {
  const std::vector<std::string> files = {"segments/video.ts", "lock", "secret", "building"};
  Fill(path(), files);
  Note why;
  std::vector<Removed> removed;
  EXPECT_FALSE(RemoveStore(path(), removed, why));
  EXPECT_EQ(why.code, "no-cache");
  EXPECT_THAT(removed, IsEmpty());
  Untouched(path(), files);
}

}  // namespace
}  // namespace fusebox::cache
