// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: readers of files that strangers write. A target takes any bytes; whatever they are, it must return.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fusebox::fuzz {

struct Target {
  std::string_view name, what;
  void (*run)(std::span<const std::byte> bytes);
  std::vector<std::string> (*seeds)();  // good files, and odd ones
};
std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);  // null: there is none

// The targets, a file each.
void RunSavedModel(std::span<const std::byte>);
std::vector<std::string> SavedModelSeeds();
void RunBundle(std::span<const std::byte>);
std::vector<std::string> BundleSeeds();
void RunRecords(std::span<const std::byte>);
std::vector<std::string> RecordSeeds();
void RunKeras(std::span<const std::byte>);
std::vector<std::string> KerasSeeds();
void RunKerasConfig(std::span<const std::byte>);
std::vector<std::string> KerasConfigSeeds();
void RunTflite(std::span<const std::byte>);
std::vector<std::string> TfliteSeeds();
void RunModel(std::span<const std::byte>);
std::vector<std::string> ModelSeeds();

// A folder of this process's own, on a file system in memory where there is one; gone when the process ends.
const std::string& ScratchDir();
void WriteScratch(const std::string& path, std::span<const std::byte> bytes);
// The SavedModel of samples/models of that name, in a scratch folder.
std::string SampleDir(const std::string& name);
std::string Contents(const std::string& path);

}  // namespace fusebox::fuzz
