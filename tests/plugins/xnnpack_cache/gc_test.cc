// SPDX-License-Identifier: Apache-2.0
// What a store keeps and what it loses: upgrades do not make it grow, a cap holds, the least recently used
// goes first.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/store_dirs.h"
#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

class Keep : public StoreTest {
 protected:
  std::unique_ptr<StoreDirs> OpenDirs() {
    Note why;
    auto dirs = StoreDirs::Open(path(), true, why);
    EXPECT_TRUE(dirs) << why.message;
    return dirs;
  }
  void SetUsed(const Digest& id, int days_ago) {
    const std::string file = path() + "/state/" + Hex(id) + ".used";
    WriteFile(file, "");
    const struct timespec then{time(nullptr) - days_ago * 86'400, 0}, times[] = {then, then};
    utimensat(AT_FDCWD, file.c_str(), times, 0);
  }
  // Ids of the segments, by one of the blobs in them.
  Digest IdOf(int blob) {
    const auto dirs = OpenDirs();
    for (const std::string& name : dirs->SegmentNames()) {
      Note why;
      const auto segment = Segment::Open(dirs->segments.get(), name, why);
      if (segment && segment->Find(KeyOf(blob).identity, 1)) return segment->superblock().id;
    }
    return {};
  }
  void MakeOld() {
    for (const std::string& file : FilesBelow(path(), ".fbpk")) {
      const struct timespec then{time(nullptr) - 100 * 86'400, 0}, times[] = {then, then};
      utimensat(AT_FDCWD, file.c_str(), times, 0);
    }
  }
};

TEST_F(Keep, ThreeUpgradesDoNotMakeItGrow) {
  for (const std::string& where : {path(), file_path()}) {
    Start(In(where), 0, 2 * kSome, 1);
    const uint64_t before = BytesBelow(directory_, ".fbpk");
    for (uint64_t fingerprint = 2; fingerprint <= 4; ++fingerprint) {
      EXPECT_EQ(Start(In(where), 0, 2 * kSome, fingerprint), 0);
      EXPECT_EQ(BytesBelow(directory_, ".fbpk"), before);
      EXPECT_EQ(Start(In(where), 0, 2 * kSome, fingerprint), 2 * kSome);
      EXPECT_EQ(CountHits(*Store::Open(In(where)), 0, 2 * kSome, fingerprint - 1), 0);
    }
    std::filesystem::remove_all(where);
  }
}

TEST_F(Keep, AnUpgradeOfOneFamilyReplacesThatFamilyAlone) {
  for (const std::string& where : {path(), file_path()}) {
    Start(In(where), 0, 2 * kSome, 1);
    const uint64_t before = BytesBelow(directory_, ".fbpk");
    for (uint64_t fingerprint = 2; fingerprint <= 4; ++fingerprint) {
      EXPECT_EQ(Start(In(where), 0, 4, fingerprint), 0);
      EXPECT_EQ(Start(In(where), 0, 4, fingerprint), 4);
      EXPECT_EQ(Start(In(where), 4, 2 * kSome, 1), 2 * kSome - 4);
      EXPECT_LT(BytesBelow(directory_, ".fbpk"), before + before / 20 + 10'000);
    }
    std::filesystem::remove_all(where);
  }
}

TEST_F(Keep, ModelsThatShareWeightsTakeTheirDifferenceMore) {
  for (const std::string& where : {path(), file_path()}) {
    Start(In(where), 0, 40);
    const uint64_t one = BytesBelow(directory_, ".fbpk");
    EXPECT_EQ(Start(In(where), 4, 44), 36);
    EXPECT_LT(static_cast<double>(BytesBelow(directory_, ".fbpk")), 1.13 * static_cast<double>(one));
    std::filesystem::remove_all(where);
  }
}

TEST_F(Keep, TheLeastRecentlyUsedGoesFirst) {
  for (int i = 0; i < 4; ++i) Start(In(path()), i * kSome, (i + 1) * kSome);
  MakeOld();
  const int days[] = {5, 20, 1, 10};
  for (int i = 0; i < 4; ++i) SetUsed(IdOf(i * kSome), days[i]);
  const uint64_t all = BytesBelow(path(), ".fbpk");
  const auto dirs = OpenDirs();
  const GcReport report = Collect(*dirs, {.max_bytes = all * 6 / 10});
  EXPECT_LE(report.bytes, all * 6 / 10);
  const auto store = Store::Open(In(path()));
  EXPECT_EQ(CountHits(*store, 0 * kSome, 1 * kSome), kSome);
  EXPECT_EQ(CountHits(*store, 1 * kSome, 2 * kSome), 0);
  EXPECT_EQ(CountHits(*store, 2 * kSome, 3 * kSome), kSome);
  EXPECT_EQ(CountHits(*store, 3 * kSome, 4 * kSome), 0);
}

TEST_F(Keep, TheCapHoldsAndSparesWhatIsInUse) {
  Options options = In(path());
  tuning.max_bytes = 3'500'000;
  for (int i = 0; i < 10; ++i) Start(options, i * kSome, (i + 1) * kSome);
  EXPECT_LT(BytesBelow(path(), ".fbpk"), tuning.max_bytes);
  EXPECT_EQ(Start(options, 9 * kSome, 10 * kSome), kSome);
  // One process that uses more than the cap keeps it.
  const auto store = Store::Open(options);
  for (int i = 20; i < 24; ++i) Pack(*store, i * kSome, (i + 1) * kSome);
  EXPECT_EQ(CountHits(*store, 20 * kSome, 24 * kSome), 4 * kSome);
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 4u);
  options.path = file_path();
  for (int i = 0; i < 10; ++i) Start(options, i * kSome, (i + 1) * kSome);
  EXPECT_LT(std::filesystem::file_size(file_path()), tuning.max_bytes + 100'000);
  EXPECT_EQ(Start(options, 9 * kSome, 10 * kSome), kSome);
}

TEST_F(Keep, WhatIsEvictedStaysValidForThoseWhoHaveIt) {
  Start(In(path()), 0, kSome);
  const auto store = Store::Open(In(path()));
  const Blob blob = *store->Lookup(KeyOf(3));
  Collect(*OpenDirs(), {.max_bytes = 1});
  EXPECT_TRUE(FilesBelow(path(), ".fbpk").empty());
  EXPECT_TRUE(Right(blob, 3));
}

TEST_F(Keep, LeftoversGo) {
  Start(In(path()), 0, kSome);
  const std::string digits(32, '1');
  for (const char* folder : {"/tmp/", "/state/", "/models/", "/"})
    WriteFile(path() + folder + digits + ".tmp", "x");
  WriteFile(path() + "/state/" + std::string(32, 'a') + ".used", "");
  const std::string bad = path() + "/segments/old.fbpk.bad";
  WriteFile(bad, "x");
  const struct timespec then{time(nullptr) - 8 * 86'400, 0}, times[] = {then, then};
  utimensat(AT_FDCWD, bad.c_str(), times, 0);
  EXPECT_EQ(Collect(*OpenDirs(), {}).removed_files, 6u);
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
}

TEST_F(Keep, ABuildInProgressIsNoLeftover) {
  const auto store = Store::Open(In(path()));
  const auto writer = store->NewWriter();
  std::byte* const to = writer->Reserve(SizeOf(1));
  std::copy_n(BytesOf(1).data(), SizeOf(1), to);
  Collect(*OpenDirs(), {});
  writer->Commit(KeyOf(1), to, SizeOf(1), {.seed = 1});
  writer->Publish();
  store->Flush();
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 1u);
}

}  // namespace
}  // namespace fusebox::cache
