// SPDX-License-Identifier: Apache-2.0
// Fuzz targets: readers of untrusted files. A target accepts any bytes and returns the reader's first error,
// which is never Code::kInternal.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/base/status.h"
#include "tests/fuzz/seeds.h"

namespace fusebox::fuzz {

struct Target {
  std::string_view name, what;
  Status (*run)(std::span<const std::byte> bytes);
  std::vector<std::string> (*seeds)();                // valid files
  std::vector<std::string> (*odd_seeds)() = nullptr;  // files that may be rejected
  // Changes what is read of the file; null: only its bytes change. Empty: not done.
  std::string (*mutate)(std::string_view file, std::mt19937_64& random) = nullptr;
};
std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);  // null: none

// One file per target.
Status RunSavedModel(std::span<const std::byte>);
Status RunFrozenGraph(std::span<const std::byte>);
Status RunBundle(std::span<const std::byte>);
Status RunRecords(std::span<const std::byte>);
Status RunKeras(std::span<const std::byte>);
Status RunKerasConfig(std::span<const std::byte>);
Status RunTflite(std::span<const std::byte>);
Status RunModel(std::span<const std::byte>);
Status RunDelegated(std::span<const std::byte>);
Status RunManifest(std::span<const std::byte>);
Status RunConfig(std::span<const std::byte>);
Status RunStrings(std::span<const std::byte>);
Status RunCApi(std::span<const std::byte>);

// A folder of this process, in memory if possible; removed at exit.
const std::string& ScratchDir();
void WriteScratch(const std::string& path, std::span<const std::byte> bytes);
// A sample SavedModel (samples/models) in a scratch folder.
std::string SampleDir(const std::string& name);
std::string Contents(const std::string& path);

}  // namespace fusebox::fuzz
