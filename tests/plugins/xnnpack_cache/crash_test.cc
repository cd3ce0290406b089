// SPDX-License-Identifier: Apache-2.0
// kill -9 at every named step: what is found afterwards is right, the next start packs the rest, nothing is
// left lying.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/store_dirs.h"
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
    const auto dirs = StoreDirs::Open(options.path, true, why);
    ASSERT_TRUE(dirs) << why.message;
    EXPECT_TRUE(Lock(dirs->side.get(), "lock", 0)) << "the lock is not free";
    Collect(*dirs, {});
    EXPECT_TRUE(List(dirs->tmp.get()).empty());
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
    tuning.durable = durable;
    return In(path);
  }
};

// A point to die at, and where: in a folder of segments or in one file, on a file system with files that have
// no name or without.
struct Step {
  std::string point;
  bool file, named;

  // How often a life passes it at least, as far as two tell.
  int passes() const {
    if (point == "rewritten" && file) return 0;
    if (point == "named" && !file && !named) return 0;
    return point == "secret" || point == "memo" || point == "rewritten" || (point == "blob" && !file) ? 1 : 2;
  }
};

std::vector<Step> AllSteps() {
  std::vector<Step> steps;
  for (const char* point : kPoints)
    for (const bool file : {false, true})
      for (const bool named : {false, true}) steps.push_back({point, file, named});
  return steps;
}

std::string NameOf(const Step& step) {
  std::string name = step.point + (step.file ? "_file" : "_store") + (step.named ? "_named" : "");
  std::ranges::replace(name, '-', '_');
  return name;
}

class CrashAt : public Crash, public ::testing::WithParamInterface<Step> {};

TEST_P(CrashAt, LeavesNothingWrongAndTheNextStartHeals) {
  const Step& step = GetParam();
  const std::string model = directory_ + "/model";
  WriteFile(model, std::string(SizeOf(0), 'm'));
  usleep(150'000);  // so that it can be remembered
  for (int count = 1; count <= (LongTests() ? 12 : 2); ++count) {
    const Options options = At(directory_ + "/cache" + std::to_string(count) + (step.file ? ".fbpk" : ""));
    const int status = InChild([&] {
      hooks = {.kill_at = step.point.c_str(), .kill_count = count};
      if (step.named) {
        hooks.fail = "tmpfile";  // as on a file system without files that have no name
        hooks.error = EOPNOTSUPP;
      }
      return Life(options, model);
    });
    const int killed = 128 + SIGKILL;
    if (count <= step.passes()) {
      EXPECT_EQ(status, killed) << "a life does not pass it " << count << " times";
    } else EXPECT_TRUE(status == 0 || status == killed) << status;
    CheckAfter(options, "killed at pass " + std::to_string(count));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryStep, CrashAt, ::testing::ValuesIn(AllSteps()),
                         [](const auto& info) { return NameOf(info.param); });

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
    if (WIFSIGNALED(status)) {
      EXPECT_EQ(WTERMSIG(status), SIGKILL);
    } else EXPECT_EQ(status, 0) << "round " << i;
    killed += WIFSIGNALED(status);
    if (i % 4 >= 2) CheckAfter(options, "round " + std::to_string(i));
  }
  EXPECT_GT(killed, 0);
}

}  // namespace
}  // namespace fusebox::cache
