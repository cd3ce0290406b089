// SPDX-License-Identifier: Apache-2.0
// Stores in directories of a test's own, filled with blobs whose bytes follow from their number.
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

// Large runs of the fault tests: FUSEBOX_LONG_TESTS=1.
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

// Commits blobs [first, last) that are not there yet, and checks that all of them read right. False: memory
// ran out.
bool Pack(Store& store, int first, int last, uint64_t fingerprint = 1);
bool Right(const Blob& blob, int number);
// How many of [first, last) are found; each that is must be right.
int CountHits(Store& store, int first, int last, uint64_t fingerprint = 1);

// Opens, packs what is missing, publishes, waits, closes. The number of hits.
int Start(const Options& options, int first, int last, uint64_t fingerprint = 1);

// Files below a directory that end in `suffix`, as paths.
std::vector<std::string> FilesBelow(const std::string& directory, const std::string& suffix = "");
uint64_t BytesBelow(const std::string& directory, const std::string& suffix = "");
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& content);
std::string NoteCodes(const Store& store);

// Runs in a child process, whose exit status is what `body` returns; 128 + the signal when it was killed.
int InChild(const std::function<int()>& body);

}  // namespace fusebox::cache
