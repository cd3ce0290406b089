// SPDX-License-Identifier: Apache-2.0
// Stores in test directories; blob bytes follow from the blob's number.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <functional>
#include <string>
#include <vector>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/model_memo.h"
#include "plugins/xnnpack/cache/writer.h"

namespace fusebox::cache {

// FUSEBOX_LONG_TESTS=1: long runs of the fault tests.
bool LongTests();

class StoreTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;
  Options In(const std::string& path) const;
  std::string directory_;  // empty, mode 0700
  std::string path() const { return directory_ + "/store"; }
  std::string file_path() const { return directory_ + "/store.fbpk"; }
};

inline constexpr int kSome = 6;  // blobs of a small model
size_t SizeOf(int blob);
std::vector<std::byte> BytesOf(int blob);
Key KeyOf(int blob, uint64_t fingerprint = 1);

// Commits the missing blobs of [first, last) and checks that all read back correctly. False: out of memory.
bool Pack(Store& store, int first, int last, uint64_t fingerprint = 1);
bool Right(const Blob& blob, int number);
// Number of blobs of [first, last) that are found; each must be correct.
int CountHits(Store& store, int first, int last, uint64_t fingerprint = 1);

// Opens, packs missing blobs, publishes, waits, closes. Returns the number of hits.
int Start(const Options& options, int first, int last, uint64_t fingerprint = 1);

// Files below a directory that end in `suffix`, as paths.
std::vector<std::string> FilesBelow(const std::string& directory, const std::string& suffix = "");
uint64_t BytesBelow(const std::string& directory, const std::string& suffix = "");
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& content);
std::string NoteCodes(const Store& store);

// Runs `body` in a child process; returns its result as exit status, or 128 + signal.
int InChild(const std::function<int()>& body);

}  // namespace fusebox::cache
