// SPDX-License-Identifier: Apache-2.0
// What people are told of a store, and what they may have done to it.
#include "plugins/xnnpack/cache/inspect.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

using State = SegmentView::State;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Inspection : public StoreTest {
 protected:
  static std::string Complaint(const std::string& path) {
    Note why;
    return Inspect(path, why) ? "a cache" : why.code;
  }
  static std::vector<State> States(const std::string& path) {
    Note why;
    const auto store = Inspect(path, why);
    std::vector<State> states;
    if (store)
      for (const SegmentView& s : store->segments) states.push_back(s.state);
    return states;
  }
  static void Flip(const std::string& file, size_t at) {
    std::string content = ReadFile(file);
    content[at] ^= 1;
    WriteFile(file, content);
  }
  std::string OnlySegment() const { return FilesBelow(path(), ".fbpk").at(0); }
};

TEST_F(Inspection, TellsWhatIsNoCache) {
  EXPECT_EQ(Complaint(path()), "missing");
  EXPECT_EQ(Complaint(directory_), "no-cache") << "any directory";
  EXPECT_EQ(Complaint(":memory"), "no-cache");
  WriteFile(file_path(), "somebody's notes");
  EXPECT_EQ(Complaint(file_path()), "no-cache");
  EXPECT_THAT(FilesBelow(directory_), ElementsAre(file_path())) << "nothing was made";
}

TEST_F(Inspection, ListsSegmentsOfADirectoryAndOfAFile) {
  for (const std::string& store : {path(), file_path()}) {
    Start(In(store), 0, kSome);
    Note why;
    const auto view = Inspect(store, why);
    ASSERT_TRUE(view) << why.message;
    ASSERT_EQ(view->segments.size(), 1u);
    const SegmentView& s = view->segments[0];
    EXPECT_EQ(s.state, State::kVerified) << "its builder knows";
    EXPECT_EQ(s.segment->records().size(), static_cast<size_t>(kSome));
    EXPECT_EQ(s.bytes, ReadFile(view->PathOf(s)).size());
    EXPECT_GT(s.used_s, 0);
  }
}

TEST_F(Inspection, KeepsDamageAndOtherFormatsApart) {
  Start(In(path()), 0, 1);
  Start(In(path()), 1, 2);
  const auto segments = FilesBelow(path(), ".fbpk");
  ASSERT_EQ(segments.size(), 2u);
  Flip(segments[0], 100);    // superblock
  Flip(segments[1], 8 + 1);  // version
  EXPECT_THAT(States(path()), ElementsAre(State::kBad, State::kUnusable));
}

TEST_F(Inspection, SeesSegmentsOfAnotherStore) {
  Start(In(path()), 0, 1);
  const std::string other = directory_ + "/other";
  Start(In(other), 0, 2);
  std::filesystem::copy_file(OnlySegment(), other + "/segments/copied.fbpk");
  Note why;
  const auto view = Inspect(other, why);
  ASSERT_TRUE(view);
  for (const SegmentView& s : view->segments)
    EXPECT_EQ(s.state == State::kUnusable, s.id == "copied") << s.id;
}

TEST_F(Inspection, VerifyPutsDamageAside) {
  Start(In(path()), 0, kSome);
  Flip(OnlySegment(), 4096);
  ASSERT_THAT(States(path()), ElementsAre(State::kUnverified)) << "its times differ from those on record";
  Note why;
  std::vector<Removed> aside;
  const auto view = VerifyAll(path(), aside, why);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->segments[0].state, State::kBad);
  EXPECT_THAT(view->segments[0].why.message, HasSubstr("bytes at 4096"));
  EXPECT_EQ(aside.size(), 1u);
  EXPECT_THAT(FilesBelow(path(), ".fbpk"), IsEmpty());
  EXPECT_EQ(Start(In(path()), 0, kSome), 0) << "packed anew";
  aside.clear();
  ASSERT_TRUE(VerifyAll(path(), aside, why));
  EXPECT_THAT(aside, IsEmpty());
  EXPECT_EQ(Start(In(path()), 0, kSome), kSome);
}

TEST_F(Inspection, VerifyOfAStoreThatCannotBeWrittenOnlyTells) {
  Start(In(path()), 0, kSome);
  Flip(OnlySegment(), 4096);
  std::filesystem::remove_all(path() + "/tmp");
  WriteFile(path() + "/tmp", "in the way");
  Note why;
  std::vector<Removed> aside;
  const auto view = VerifyAll(path(), aside, why);
  ASSERT_TRUE(view) << why.message;
  EXPECT_EQ(view->segments[0].state, State::kBad);
  EXPECT_THAT(aside, IsEmpty());
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 1u);
  EXPECT_FALSE(RemoveStore(path(), aside, why));
  EXPECT_FALSE(CollectGarbage(path(), 0, aside, why));
  EXPECT_NE(why.message, "");
}

TEST_F(Inspection, RemovesChosenSegmentsOrNone) {
  Start(In(path()), 0, 2);
  Start(In(path()), 2, 4);
  Note why;
  auto view = Inspect(path(), why);
  ASSERT_EQ(view->segments.size(), 2u);
  const std::string first = view->segments[0].id;
  std::vector<Removed> removed;
  EXPECT_FALSE(RemoveSegments(path(), {first, "nothing"}, removed, why));
  EXPECT_EQ(why.code, "no-segment");
  EXPECT_EQ(FilesBelow(path(), ".fbpk").size(), 2u);
  EXPECT_TRUE(RemoveSegments(path(), {first}, removed, why));
  EXPECT_EQ(removed.size(), 1u);
  view = Inspect(path(), why);
  ASSERT_EQ(view->segments.size(), 1u);
  EXPECT_NE(view->segments[0].id, first);
}

TEST_F(Inspection, RemovesTheStoreAndNothingElse) {
  for (const std::string& store : {path(), file_path()}) {
    Start(In(store), 0, kSome);
    const std::string side = store == path() ? store : store + ".d";
    WriteFile(side + "/keep.txt", "mine");
    WriteFile(side + "/building", "");  // where builds wait for each other
    std::vector<Removed> removed;
    Note why;
    EXPECT_TRUE(RemoveStore(store, removed, why)) << why.message;
    EXPECT_GE(removed.size(), 2u);
    EXPECT_THAT(FilesBelow(directory_), ElementsAre(side + "/keep.txt"));
    std::filesystem::remove_all(side);
  }
  EXPECT_EQ(Complaint(path()), "missing");
}

TEST_F(Inspection, WhatIsRemovedStaysWithThoseWhoHaveIt) {
  Start(In(path()), 0, kSome);
  const auto store = Store::Open(In(path()));
  const auto blob = store->Lookup(KeyOf(3));
  ASSERT_TRUE(blob);
  std::vector<Removed> removed;
  Note why;
  ASSERT_TRUE(RemoveStore(path(), removed, why));
  EXPECT_TRUE(Right(*blob, 3));
  EXPECT_TRUE(Pack(*store, kSome, kSome + 1)) << "it packs on in memory";
}

TEST_F(Inspection, RefusesToRemoveWhatIsNoCache) {
  WriteFile(directory_ + "/letter.txt", "dear");
  std::vector<Removed> removed;
  Note why;
  EXPECT_FALSE(RemoveStore(directory_, removed, why));
  EXPECT_FALSE(RemoveStore(directory_ + "/letter.txt", removed, why));
  EXPECT_EQ(ReadFile(directory_ + "/letter.txt"), "dear");
}

TEST_F(Inspection, CollectsDownToASize) {
  Start(In(path()), 0, 2);
  Start(In(path()), 2, 4);
  std::vector<Removed> removed;
  Note why;
  ASSERT_TRUE(CollectGarbage(path(), 1'000'000'000, removed, why)) << why.message;
  EXPECT_THAT(removed, IsEmpty());
  ASSERT_TRUE(CollectGarbage(path(), 1, removed, why)) << why.message;
  EXPECT_EQ(removed.size(), 2u);
  EXPECT_THAT(FilesBelow(path(), ".fbpk"), IsEmpty());
}

}  // namespace
}  // namespace fusebox::cache
