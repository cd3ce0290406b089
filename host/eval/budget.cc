// SPDX-License-Identifier: Apache-2.0
#include "host/eval/budget.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "host/base/cgroup.h"

namespace fusebox {
namespace {

// Sessions below this size do not read the files of the default limit: that takes longer than opening them.
constexpr size_t kAlwaysAllowed = size_t{64} << 20;

thread_local MemoryBudget* current = nullptr;
std::atomic<size_t> used_of_default = 0;  // by all budgets without an explicit limit

// Returns nothing for a missing file, or for "max".
std::optional<size_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

// The number after `key` in a file with one in each line.
std::optional<size_t> ReadNumberOf(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    size_t value = 0;
    std::istringstream rest(line.substr(key.size()));
    return rest >> value ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

size_t LeftOfMachine(const std::string& root) {
  const auto available = ReadNumberOf(root + "proc/meminfo", "MemAvailable:");
  return available ? *available * 1024 : SIZE_MAX;
}

size_t LeftOfAddresses(const std::string& root) {
  const auto limit = ReadNumberOf(root + "proc/self/limits", "Max address space");
  if (!limit) return SIZE_MAX;
  const size_t used = ReadNumberOf(root + "proc/self/status", "VmSize:").value_or(0) * 1024;
  return *limit > used ? *limit - used : 0;
}

// Returns the bytes left in a cgroup and in the cgroups around it. The kernel drops cached files before it
// refuses memory.
size_t LeftInCgroups(const std::vector<std::string>& folders, const char* limit_file, const char* use_file,
                     const std::string& cached) {
  size_t left = SIZE_MAX;
  for (const std::string& folder : folders) {
    const auto limit = ReadNumber(folder + limit_file);
    if (!limit) continue;
    size_t used = ReadNumber(folder + use_file).value_or(0);
    for (const char* list : {"inactive_file ", "active_file "})
      used -= std::min(used, ReadNumberOf(folder + "memory.stat", cached + list).value_or(0));
    left = std::min(left, *limit > used ? *limit - used : 0);
  }
  return left;
}

}  // namespace

size_t AvailableMemory(const std::string& root) {
  const std::string cgroups = CgroupsOfProcess(root);
  return std::min({LeftOfMachine(root), LeftOfAddresses(root),
                   LeftInCgroups(CgroupFolders(root, cgroups, ""), "memory.max", "memory.current", ""),
                   LeftInCgroups(CgroupFolders(root, cgroups, "memory"), "memory.limit_in_bytes",
                                 "memory.usage_in_bytes", "total_")});
}

size_t MemoryBudget::DefaultLimit() {
  static const size_t limit = std::max(AvailableMemory("/") / 2, kAlwaysAllowed);
  return limit;
}

MemoryBudget::MemoryBudget(size_t limit) : limit_(limit), used_(limit != 0 ? own_ : used_of_default) {}

size_t MemoryBudget::LimitFor(size_t total) const {
  if (limit_ != 0) return limit_;
  return total <= kAlwaysAllowed ? kAlwaysAllowed : DefaultLimit();
}

void MemoryBudget::Take(size_t bytes) {
  size_t before = used_;
  do {
    const size_t total = before + bytes;
    const size_t limit = LimitFor(total);
    if (total < bytes || total > limit)
      throw NoMemory(fmt::format("{} bytes are needed, {} are in use, and the memory limit is {} bytes",
                                 bytes, before, limit));
  } while (!used_.compare_exchange_weak(before, before + bytes));
}

void Reservation::Reserve(size_t bytes) {
  if (bytes <= bytes_) return;
  budget_.Take(bytes - bytes_);
  bytes_ = bytes;
}

Status MemoryBudget::Allows(size_t bytes) const {
  const size_t limit = LimitFor(bytes);
  if (bytes <= limit) return {};
  return Fail(Code::kOutOfMemory,
              fmt::format("{} bytes are needed, and the memory limit is {} bytes", bytes, limit));
}

MemoryBudget* MemoryBudget::Current() { return current; }
MemoryBudget::Scope::Scope(MemoryBudget& budget) : before_(std::exchange(current, &budget)) {}
MemoryBudget::Scope::~Scope() { current = before_; }

}  // namespace fusebox
