// SPDX-License-Identifier: Apache-2.0
// kill -9 at every named step: what is found afterwards is right, the next start packs the rest, nothing is left lying.
#include <unistd.h>

#include <filesystem>
#include <random>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/home.h"
#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

constexpr const char* kPoints[] = {
    "secret",           "temp",       "grown",    "commit",    "blob",    "index",
    "superblock",       "cut",        "synced",   "locked",    "named",   "linked",
    "directory-synced", "small-file", "recorded", "rewritten", "removed", "memo"};

class Crash : public StoreTest {
 protected:
  // One start with a model's memo, an upgrade, a smaller upgrade: passes every point.
  static int Life(const Options& options, const std::string& model) {
    {
      const auto store = Store::Open(options);
      const auto memo = store->Memo(*ModelFile::Of(model.c_str()));
      memo->Of(0, BytesOf(0));
      memo->Save(ModelFile::Of(model.c_str()));
    }
    Start(options, 0, kSome, 1);
    Start(options, kSome, 2 * kSome, 1);
    Start(options, 0, 2, 2);
    Start(options, kSome, kSome + 5, 2);
    return 0;
  }

  void CheckAfter(const Options& options, const std::string& what) {
    SCOPED_TRACE(what);
    for (const uint64_t fingerprint : {1, 2}) {
      const auto store = Store::Open(options);
      CountHits(*store, 0, 2 * kSome, fingerprint);  // right, if found
      EXPECT_EQ(store->stats().segments_bad, 0u) << NoteCodes(*store);
    }
    Start(options, 0, 2 * kSome, 3);
    EXPECT_EQ(Start(options, 0, 2 * kSome, 3), 2 * kSome);
    Note why;
    const auto home = Home::Open(options.path, true, false, why);
    ASSERT_TRUE(home) << why.message;
    EXPECT_TRUE(Lock(home->side.get(), "lock", 0)) << "the lock is not free";
    Collect(*home, {});
    EXPECT_TRUE(List(home->tmp.get()).empty());
    for (const std::string& file : FilesBelow(directory_)) {
      if (!file.starts_with(options.path)) continue;  // of another store, which nobody has collected yet
      EXPECT_FALSE(file.ends_with(".tmp")) << file;
      EXPECT_EQ(file.find("/.new-"), std::string::npos) << file;
    }
    uint64_t packed = 0;
    for (int i = 0; i < 2 * kSome; ++i) packed += SizeOf(i);
    const bool file = std::filesystem::is_regular_file(options.path);
    EXPECT_LT(file ? std::filesystem::file_size(options.path) : BytesBelow(options.path, ".fbpk"),
              packed + packed / 50 + 20'000);
  }

  Options At(const std::string& path, bool durable = false) const {
    Options options = In(path);
    options.durable = durable;
    return options;
  }
};

TEST_F(Crash, AtEveryNamedStepNothingWrongIsLeftAndTheNextStartHeals) {
  int killed = 0;
  const std::string model = directory_ + "/model";
  WriteFile(model, std::string(SizeOf(0), 'm'));
  usleep(150'000);  // so that it can be remembered
  for (const char* variant : {"/store-a", "/file-a.fbpk", "/store-named", "/file-named.fbpk"}) {
    for (const char* point : kPoints)
      for (int count = 1; count <= (LongTests() ? 12 : 2); ++count) {
        const Options options = At(directory_ + variant + point + std::to_string(count) +
                                   (std::string(variant).ends_with(".fbpk") ? ".fbpk" : ""));
        const int status = InChild([&] {
          hooks = {.kill_at = point, .kill_count = count};
          if (std::string(variant).find("named") != std::string::npos) {
            hooks.fail = "tmpfile";  // as on a file system without files that have no name
            hooks.error = EOPNOTSUPP;
          }
          return Life(options, model);
        });
        EXPECT_TRUE(status == 0 || status == 128 + SIGKILL) << point << " " << status;
        if (status == 0 && count == 1) {
          EXPECT_TRUE(std::string("blob rewritten named").find(point) != std::string::npos)
              << variant << " never reaches " << point;
        }
        killed += status != 0;
        CheckAfter(options, std::string(variant) + " " + point + " " + std::to_string(count));
      }
  }
  std::printf("  killed %d times\n", killed);
  EXPECT_GT(killed, 80);
}

TEST_F(Crash, WhatARewriteLeftTwiceIsCollected) {
  const Options options = At(directory_ + "/store");
  Start(options, 0, 2 * kSome, 3);
  const int status = InChild([&] {
    hooks = {.kill_at = "rewritten", .kill_count = 1};
    return Start(options, 0, kSome, 1);  // replaces one half, and dies with the other half there twice
  });
  EXPECT_EQ(status, 128 + SIGKILL);
  CheckAfter(options, "all is found, so that nothing is published and collected on the way");
}

TEST_F(Crash, AtAnyTime) {
  std::mt19937 random(7);
  const std::string model = directory_ + "/model";
  WriteFile(model, std::string(SizeOf(0), 'm'));
  const int rounds = LongTests() ? 200 : 12;
  int killed = 0;
  for (int i = 0; i < rounds; ++i) {
    const Options options = At(directory_ + (i % 2 ? "/file.fbpk" : "/store"), i % 3 == 0);
    const pid_t child = fork();
    if (child == 0) _exit(Life(options, model));
    usleep(std::uniform_int_distribution<unsigned>(0, 60'000)(random));
    kill(child, SIGKILL);
    int status;
    waitpid(child, &status, 0);
    killed += WIFSIGNALED(status);
    if (i % 4 >= 2) CheckAfter(options, "round " + std::to_string(i));
  }
  std::printf("  killed %d times of %d\n", killed, rounds);
}

}  // namespace
}  // namespace fusebox::cache
