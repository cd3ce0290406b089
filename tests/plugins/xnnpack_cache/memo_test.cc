// SPDX-License-Identifier: Apache-2.0
// A warm start reads no weights of a model; a model that changed is read again, however it was changed.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tests/plugins/xnnpack_cache/fixture.h"

namespace fusebox::cache {
namespace {

constexpr size_t kSize = 100'000;
constexpr useconds_t kOld = 150'000;  // microseconds after which a file is no longer young

class Memo : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    model_ = directory_ + "/model.tflite";
    WriteFile(model_, std::string(kSize, 'a'));
    usleep(kOld);
  }

  struct Result {
    Digest first, second;
    uint64_t hashed;
  };
  // As a start does it: the two halves of the file.
  Result Open(const Options& options) {
    const auto store = Store::Open(options);
    const uint64_t before = store->stats().bytes_hashed;
    const auto memo = store->Memo(*ModelFile::Of(model_.c_str()));
    const std::string content = ReadFile(model_);
    const auto bytes = std::as_bytes(std::span(content));
    Result result{memo->Of(0, bytes.first(kSize / 2)),
                  memo->Of(kSize / 2, bytes.subspan(kSize / 2, kSize / 2)), 0};
    memo->Save(ModelFile::Of(model_.c_str()));
    result.hashed = store->stats().bytes_hashed - before;
    return result;
  }

  // The edit must be seen, and the digest must be that of the content.
  void ExpectSeen(const char* what) {
    SCOPED_TRACE(what);
    const Result result = Open(In(path()));
    const std::string content = ReadFile(model_);
    EXPECT_EQ(result.first,
              Store::Open(In(path()))->HashContent(std::as_bytes(std::span(content)).first(kSize / 2)));
    EXPECT_EQ(result.hashed, kSize);
  }

  void PutByte(char value) {
    const int fd = open(model_.c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(fd, &value, 1, 100), 1);
    close(fd);
  }
  void KeepTimes(const std::function<void()>& edit) {
    struct stat before;
    ASSERT_EQ(stat(model_.c_str(), &before), 0);
    edit();
    const struct timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, model_.c_str(), times, 0), 0);
  }
  std::string model_;
};

TEST_F(Memo, AWarmStartReadsNoWeights) {
  const Result cold = Open(In(path()));
  EXPECT_EQ(cold.hashed, kSize);
  const Result warm = Open(In(path()));
  EXPECT_EQ(warm.hashed, 0u);
  EXPECT_EQ(warm.first, cold.first);
  EXPECT_EQ(warm.second, cold.second);
  EXPECT_EQ(Open(In(file_path())).hashed, kSize);
  EXPECT_EQ(Open(In(file_path())).hashed, 0u);
}

TEST_F(Memo, EveryEditIsSeen) {
  Open(In(path()));
  const auto again = [&](const char* what) {
    ExpectSeen(what);
    usleep(kOld);
    Open(In(path()));
    EXPECT_EQ(Open(In(path())).hashed, 0u);
  };
  KeepTimes([&] { PutByte('b'); });
  again("in place, same size and mtime");
  PutByte('c');
  again("in place");
  WriteFile(model_ + ".new", std::string(kSize, 'd'));
  std::filesystem::rename(model_ + ".new", model_);
  again("renamed over");
  KeepTimes([&] {
    WriteFile(model_ + ".new", std::string(kSize, 'e'));
    std::filesystem::rename(model_ + ".new", model_);
  });
  again("renamed over, same size and mtime");
  WriteFile(model_, std::string(kSize, 'f'));
  again("written anew");
  WriteFile(model_, std::string(kSize, 'f') + "metadata");
  again("appended");
  const int fd = open(model_.c_str(), O_RDWR);
  void* const map = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  std::memset(static_cast<char*>(map) + 10, 'g', 10);
  munmap(map, kSize);
  close(fd);
  again("through a mapping");
}

TEST_F(Memo, AYoungFileIsNotRemembered) {
  // An edit in the same tick of the clock would keep all times.
  const auto store = Store::Open(In(path()));
  for (int i = 0; i < 20; ++i) {
    PutByte(static_cast<char>('A' + i));
    const std::string content = ReadFile(model_);
    const auto bytes = std::as_bytes(std::span(content)).first(kSize);
    const auto memo = store->Memo(*ModelFile::Of(model_.c_str()));
    EXPECT_EQ(memo->Of(0, bytes), store->HashContent(bytes));
    memo->Save(ModelFile::Of(model_.c_str()));
  }
  EXPECT_TRUE(FilesBelow(path(), ".fbmm").empty());
}

TEST_F(Memo, AFileThatChangesWhileItIsReadIsNotRemembered) {
  const auto store = Store::Open(In(path()));
  const auto memo = store->Memo(*ModelFile::Of(model_.c_str()));
  memo->Of(0, BytesOf(0));
  PutByte('z');
  memo->Save(ModelFile::Of(model_.c_str()));
  EXPECT_TRUE(FilesBelow(path(), ".fbmm").empty());
}

TEST_F(Memo, ADamagedMemoIsForgotten) {
  const Result cold = Open(In(path()));
  const auto files = FilesBelow(path(), ".fbmm");
  ASSERT_EQ(files.size(), 1u);
  const std::string good = ReadFile(files[0]);
  int tried = 0;
  const auto check = [&](const std::string& content) {
    WriteFile(files[0], content);
    const Result result = Open(In(path()));
    EXPECT_EQ(result.first, cold.first);
    EXPECT_EQ(result.second, cold.second);
    EXPECT_EQ(result.hashed, kSize);
    EXPECT_EQ(Open(In(path())).hashed, 0u);
    ++tried;
  };
  for (size_t at = 0; at < good.size(); at += LongTests() ? 1 : 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1 << at % 8);
    check(bad);
  }
  for (size_t size = 0; size < good.size(); size += LongTests() ? 1 : 9) check(good.substr(0, size));
  check(good + "x");
  std::printf("  %d damaged memos\n", tried);
}

TEST_F(Memo, AnotherStoresDigestsAreOfNoUse) {
  const Digest here = Open(In(path())).first, there = Open(In(directory_ + "/other")).first;
  EXPECT_NE(here, there);
  std::filesystem::copy_file(FilesBelow(path(), ".fbmm")[0], FilesBelow(directory_ + "/other", ".fbmm")[0],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(Open(In(directory_ + "/other")).first, there);
}

}  // namespace
}  // namespace fusebox::cache
