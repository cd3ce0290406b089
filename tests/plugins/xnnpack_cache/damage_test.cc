// SPDX-License-Identifier: Apache-2.0
// Files as they must not be: every one of them is a miss, never wrong bytes, never a crash, and the next
// start heals it.
#include <sys/stat.h>

#include <cstring>
#include <filesystem>

#include "plugins/xnnpack/cache/segment_format.h"
#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

class Damage : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    Start(In(file_path()), 0, kSome);
    good_ = ReadFile(file_path());
    std::memcpy(&super_, good_.data(), sizeof super_);
  }

  // Puts `content` in place and starts twice: nothing wrong may come out, and the second start must find all.
  void Try(const std::string& content, const std::string& what, bool may_be_harmless = false) {
    SCOPED_TRACE(what);
    ++tried_;
    std::filesystem::remove(file_path());
    WriteFile(file_path(), content);
    {
      const auto store = Store::Open(In(file_path()));
      const int hits = CountHits(*store, 0, kSome);
      if (!may_be_harmless) {
        EXPECT_EQ(hits, 0);
        EXPECT_GE(store->stats().segments_bad, 1u) << NoteCodes(*store);
        EXPECT_EQ(store->stats().fallback_reason, "corrupt");
      }
      EXPECT_TRUE(Pack(*store, 0, kSome));
    }
    EXPECT_EQ(Start(In(file_path()), 0, kSome), kSome);
  }

  std::string Flipped(size_t at, int bit) const {
    std::string content = good_;
    content[at] = static_cast<char>(content[at] ^ 1 << bit);
    return content;
  }

  // As a hostile writer makes it: with all checksums right.
  void Seal(std::string& content, Superblock super) const {
    const auto bytes = std::as_bytes(std::span(content));
    const uint64_t end = content.size() - sizeof(Footer);
    if (super.index_offset <= end)
      super.index_digest = Hash(bytes.subspan(super.index_offset, end - super.index_offset));
    super.self = Hash(std::as_bytes(std::span(&super, 1)).first(offsetof(Superblock, self)));
    Footer footer{{}, super.file_size, super.self};
    std::memcpy(footer.magic, kMagic, sizeof kMagic);
    std::memcpy(content.data(), &super, sizeof super);
    std::memcpy(content.data() + end, &footer, sizeof footer);
  }

  Record RecordAt(const std::string& content, size_t i) const {
    Record record;
    std::memcpy(&record, content.data() + super_.index_offset + i * sizeof record, sizeof record);
    return record;
  }

  std::string WithRecord(size_t i, const Record& record) const {
    std::string content = good_;
    std::memcpy(content.data() + super_.index_offset + i * sizeof record, &record, sizeof record);
    Seal(content, super_);
    return content;
  }

  void TearDown() override {
    if (tried_ > 0) std::printf("  %d damaged files\n", tried_);
    StoreTest::TearDown();
  }

  std::string good_;
  Superblock super_;
  int tried_ = 0;
};

TEST_F(Damage, ABitFlippedInSuperblockIndexOrFooterIsSeen) {
  std::vector<size_t> places;
  const size_t step = LongTests() ? 1 : 13;
  for (size_t at = 0; at < 192; at += LongTests() ? 1 : 5) places.push_back(at);
  for (size_t at = 192; at < sizeof(Superblock); at += 61 * step) places.push_back(at);
  for (size_t at = super_.index_offset; at < good_.size(); at += step) places.push_back(at);
  for (const size_t at : places) {
    // A version from the future is somebody else's file, which is left alone.
    if (at >= offsetof(Superblock, version) && at < offsetof(Superblock, byte_order)) continue;
    Try(Flipped(at, static_cast<int>(at % 8)), "bit at " + std::to_string(at));
  }
}

TEST_F(Damage, ABitFlippedInABlobIsSeen) {
  const size_t step = LongTests() ? 4099 : 150'001;
  for (size_t i = 0; i < super_.entry_count; ++i) {
    const Record r = RecordAt(good_, i);
    for (size_t at = 0; at < r.size; at += step)
      Try(Flipped(r.offset + at, 3), "blob at " + std::to_string(r.offset + at));
    Try(Flipped(r.offset + r.size - 1, 7), "last byte of a blob");
  }
}

TEST_F(Damage, WhatLiesBetweenBlobsMeansNothing) {
  const Record r = RecordAt(good_, 0);
  std::vector<bool> covered(super_.index_offset);
  for (size_t i = 0; i < super_.entry_count; ++i) {
    const Record record = RecordAt(good_, i);
    std::fill_n(covered.begin() + static_cast<ptrdiff_t>(record.offset), record.size, true);
  }
  const size_t gap =
      static_cast<size_t>(std::find(covered.begin() + kFirstBlob, covered.end(), false) - covered.begin());
  ASSERT_LT(gap, covered.size()) << r.offset;
  Try(Flipped(gap, 0), "gap", true);
}

TEST_F(Damage, ATruncatedFileIsSeen) {
  std::vector<size_t> sizes = {0,
                               1,
                               8,
                               4095,
                               4096,
                               4097,
                               super_.index_offset - 1,
                               super_.index_offset,
                               super_.index_offset + 64,
                               good_.size() - 33,
                               good_.size() - 32,
                               good_.size() - 1};
  for (size_t size = 0; size < good_.size(); size += LongTests() ? 4096 : 200'704) sizes.push_back(size);
  for (const size_t size : sizes) Try(good_.substr(0, size), "cut at " + std::to_string(size));
}

TEST_F(Damage, AnExtendedFileIsSeen) {
  for (const size_t more : {1, 8, 64, 4096, 1 << 20}) Try(good_ + std::string(more, '\0'), "longer");
  Try(good_ + good_, "twice");
}

TEST_F(Damage, ZeroedPagesAreSeen) {
  // As a power cut leaves them where the disk lied.
  for (size_t page = 0; page + 4096 <= good_.size(); page += LongTests() ? 4096 : 131'072) {
    std::string content = good_;
    std::memset(content.data() + page, 0, 4096);
    if (content != good_) Try(content, "page " + std::to_string(page));
  }
}

TEST_F(Damage, SwappedBlobsAreSeen) {
  for (size_t i = 0; i + 1 < super_.entry_count; ++i) {
    const Record a = RecordAt(good_, i), b = RecordAt(good_, i + 1);
    const size_t n = std::min(a.size, b.size);
    std::string content = good_;
    std::swap_ranges(content.begin() + static_cast<ptrdiff_t>(a.offset),
                     content.begin() + static_cast<ptrdiff_t>(a.offset + n),
                     content.begin() + static_cast<ptrdiff_t>(b.offset));
    Try(content, "blobs " + std::to_string(i));
  }
}

TEST_F(Damage, RecordsThatPointAnywhereAreSeenThoughTheirChecksumIsRight) {
  constexpr uint64_t kHuge[] = {UINT64_MAX, UINT64_MAX - 127, UINT64_MAX / 2, uint64_t{1} << 63, 1u << 31};
  for (size_t i = 0; i < super_.entry_count; ++i) {
    Record r = RecordAt(good_, i);
    for (const uint64_t value : kHuge) {
      Record bad = r;
      bad.offset = value / 128 * 128;
      Try(WithRecord(i, bad), "offset");
      bad = r;
      bad.size = value;
      Try(WithRecord(i, bad), "size");
    }
    for (const uint64_t offset : {uint64_t{0}, uint64_t{128}, r.offset + 1, super_.index_offset}) {
      Record bad = r;
      bad.offset = offset;
      Try(WithRecord(i, bad), "offset " + std::to_string(offset));
    }
    Record bad = r;
    bad.size = 0;
    Try(WithRecord(i, bad), "empty");
    bad = r;
    bad.identity = RecordAt(good_, i == 0 ? 1 : i - 1).identity;
    Try(WithRecord(i, bad), "duplicate key");
    bad = r;
    bad.packed.low ^= 1;
    Try(WithRecord(i, bad), "another digest");
    bad = r;
    bad.offset = RecordAt(good_, (i + 1) % super_.entry_count).offset;
    Try(WithRecord(i, bad), "another's blob");
  }
}

TEST_F(Damage, SuperblocksThatSayAnythingAreSeenThoughTheirChecksumIsRight) {
  constexpr uint64_t kValues[] = {
      0, 1, 63, 4095, 4096, 8192, UINT64_MAX, UINT64_MAX - 4096, uint64_t{1} << 58};
  for (const auto member :
       {&Superblock::file_size, &Superblock::index_offset, &Superblock::entry_count, &Superblock::notes_size})
    for (const uint64_t value : kValues) {
      Superblock bad = super_;
      bad.*member = value;
      std::string content = good_;
      Seal(content, bad);
      Try(content, "value " + std::to_string(value));
    }
  Superblock bad = super_;
  std::memset(bad.writer, 'x', sizeof bad.writer);
  std::string content = good_;
  Seal(content, bad);
  Try(content, "writer");
}

TEST_F(Damage, ALaterFormatIsLeftAlone) {
  Superblock later = super_;
  later.version = kFormatVersion + 1;
  std::string content = good_;
  Seal(content, later);
  std::filesystem::remove(file_path());
  WriteFile(file_path(), content);
  EXPECT_EQ(Start(In(file_path()), 0, kSome), 0);
  EXPECT_EQ(ReadFile(file_path()), content);
}

TEST_F(Damage, ABadSegmentOfADirectoryIsPutAsideAndTheOthersServe) {
  Start(In(path()), 0, 3);
  Start(In(path()), 3, 6);
  const auto files = FilesBelow(path(), ".fbpk");
  ASSERT_EQ(files.size(), 2u);
  std::string content = ReadFile(files[0]);
  content[5000] = static_cast<char>(content[5000] ^ 1);
  WriteFile(files[0], content);
  {
    const auto store = Store::Open(In(path()));
    EXPECT_EQ(CountHits(*store, 0, 6), 3);
    EXPECT_EQ(FilesBelow(path(), ".fbpk.bad").size(), 1u);
    EXPECT_TRUE(Pack(*store, 0, 6));
  }
  EXPECT_EQ(Start(In(path()), 0, 6), 6);
}

TEST_F(Damage, AVerifiedFileThatWasEditedIsVerifiedAgain) {
  const auto count_bad = [&] {
    const auto store = Store::Open(In(file_path()));
    store->Lookup(KeyOf(0));
    return store->stats().segments_bad;
  };
  EXPECT_EQ(count_bad(), 0u);
  std::string content = Flipped(kFirstBlob, 0);
  WriteFile(file_path(), content);
  EXPECT_EQ(count_bad(), 1u);
}

}  // namespace
}  // namespace fusebox::cache
