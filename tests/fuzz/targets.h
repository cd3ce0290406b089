// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: readers of files that strangers write. A target accepts any bytes and returns the first
// error of the reader, which is never Code::kInternal.
#pragma once

#include <cstddef>
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
  std::vector<std::string> (*seeds)();                // files that the reader accepts
  std::vector<std::string> (*odd_seeds)() = nullptr;  // further files, which it may refuse
};
std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);  // null: there is none

// The targets, a file each.
Status RunSavedModel(std::span<const std::byte>);
Status RunBundle(std::span<const std::byte>);
Status RunRecords(std::span<const std::byte>);
Status RunKeras(std::span<const std::byte>);
Status RunKerasConfig(std::span<const std::byte>);
Status RunTflite(std::span<const std::byte>);
Status RunModel(std::span<const std::byte>);

// A folder of this process's own, on a file system in memory where there is one; gone when the process ends.
const std::string& ScratchDir();
void WriteScratch(const std::string& path, std::span<const std::byte> bytes);
// The SavedModel of samples/models of that name, in a scratch folder.
std::string SampleDir(const std::string& name);
std::string Contents(const std::string& path);

}  // namespace fusebox::fuzz
