// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/xnnpack_cache/fixture.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace fusebox::cache {

namespace fs = std::filesystem;

bool LongTests() {
  const char* value = std::getenv("FUSEBOX_LONG_TESTS");
  return value && value[0] == '1';
}

void StoreTest::SetUp() {
  std::string name = testing::TempDir() + "fbstore-XXXXXX";
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  directory_ = fs::canonical(name).string();
  tuning = {.min_free_bytes = 0, .durable = false};  // small stores
}

void StoreTest::TearDown() {
  hooks = {};
  tuning = {};
  std::error_code error;
  fs::remove_all(directory_, error);
}

Options StoreTest::In(const std::string& path) const { return {.path = path, .writer = "test"}; }

size_t SizeOf(int blob) {
  constexpr size_t kSizes[] = {64, 4096, 100'016, 1'048'576, 16, 300'000};
  return kSizes[blob % 6] + static_cast<size_t>(blob / 6) * 16;
}

std::vector<std::byte> BytesOf(int blob) {
  std::vector<std::byte> bytes(SizeOf(blob));
  uint64_t state = static_cast<uint64_t>(blob) * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& b : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

Key KeyOf(int blob, uint64_t fingerprint) {
  return KeyBuilder("test").Number(static_cast<uint64_t>(blob)).Build(fingerprint);
}

bool Right(const Blob& blob, int number) {
  const std::vector<std::byte> bytes = BytesOf(number);
  return blob.bytes.size() == bytes.size() &&
         std::memcmp(blob.bytes.data(), bytes.data(), bytes.size()) == 0 &&
         reinterpret_cast<uintptr_t>(blob.bytes.data()) % 128 == 0 &&
         blob.seed == static_cast<uint32_t>(number);
}

bool Pack(Store& store, int first, int last, uint64_t fingerprint) {
  const auto writer = store.NewWriter();
  std::vector<std::pair<int, Blob>> blobs;
  for (int i = first; i < last; ++i) {
    if (auto hit = store.Lookup(KeyOf(i, fingerprint))) {
      blobs.emplace_back(i, *hit);
      continue;
    }
    const std::vector<std::byte> bytes = BytesOf(i);
    std::byte* const to = writer->Reserve(bytes.size());
    if (!to) return false;
    std::memcpy(to, bytes.data(), bytes.size());
    blobs.emplace_back(
        i, writer->Commit(KeyOf(i, fingerprint), to, bytes.size(),
                          {.seed = static_cast<uint32_t>(i), .recipe = "blob " + std::to_string(i)}));
  }
  writer->Publish();
  for (const auto& [number, blob] : blobs) EXPECT_TRUE(Right(blob, number)) << "blob " << number;
  store.Flush();
  for (const auto& [number, blob] : blobs)
    EXPECT_TRUE(Right(blob, number)) << "blob " << number << " after publishing";
  return true;
}

int CountHits(Store& store, int first, int last, uint64_t fingerprint) {
  int hits = 0;
  for (int i = first; i < last; ++i)
    if (const auto hit = store.Lookup(KeyOf(i, fingerprint))) {
      EXPECT_TRUE(Right(*hit, i)) << "blob " << i;
      ++hits;
    }
  return hits;
}

int Start(const Options& options, int first, int last, uint64_t fingerprint) {
  const auto store = Store::Open(options);
  const int hits = CountHits(*store, first, last, fingerprint);
  EXPECT_TRUE(Pack(*store, first, last, fingerprint));
  return hits;
}

std::vector<std::string> FilesBelow(const std::string& directory, const std::string& suffix) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(directory, error))
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix))
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

uint64_t BytesBelow(const std::string& directory, const std::string& suffix) {
  uint64_t bytes = 0;
  for (const std::string& file : FilesBelow(directory, suffix)) bytes += fs::file_size(file);
  return bytes;
}

std::string ReadFile(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

void WriteFile(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

std::string NoteCodes(const Store& store) {
  std::string codes;
  for (const Note& note : store.notes()) codes += note.code + " (" + note.message + ") ";
  return codes;
}

int InChild(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    const int status = body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 99 : status);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace fusebox::cache
