// SPDX-License-Identifier: Apache-2.0
#include "host/eval/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>
#include <utility>

namespace fusebox {
namespace {

// Sessions below this size do not read the files of the default limit: that takes longer than opening them.
constexpr size_t kAlwaysAllowed = size_t{64} << 20;

thread_local MemoryBudget* current = nullptr;

// Nothing: no such file, or "max".
std::optional<size_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  size_t value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

std::optional<size_t> MemAvailable(const std::string& root) {
  std::ifstream file(root + "proc/meminfo");
  for (std::string key, rest; file >> key && std::getline(file, rest);)
    if (key == "MemAvailable:") return std::stoull(rest) * 1024;
  return std::nullopt;
}

// The cgroup's path of this controller: "0::/a/b" in version 2, "5:memory:/a/b" in version 1.
std::string CgroupPath(const std::string& root, std::string_view controller) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    if (std::string_view(line).substr(first + 1, second - first - 1) == controller)
      return line.substr(second + 1);
  }
  return "/";
}

// What is left in a cgroup and in those around it.
size_t LeftInCgroups(const std::string& mount, std::string path, const char* limit_file,
                     const char* use_file) {
  size_t left = SIZE_MAX;
  for (;;) {
    const std::string folder = mount + path + "/";
    if (const auto limit = ReadNumber(folder + limit_file)) {
      const size_t used = ReadNumber(folder + use_file).value_or(0);
      left = std::min(left, *limit > used ? *limit - used : 0);
    }
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) return left;
    path.resize(slash);
  }
}

}  // namespace

size_t AvailableMemory(const std::string& root) {
  const std::string mount = root + "sys/fs/cgroup";
  return std::min({MemAvailable(root).value_or(SIZE_MAX),
                   LeftInCgroups(mount, CgroupPath(root, ""), "memory.max", "memory.current"),
                   LeftInCgroups(mount + "/memory", CgroupPath(root, "memory"), "memory.limit_in_bytes",
                                 "memory.usage_in_bytes")});
}

size_t MemoryBudget::DefaultLimit() {
  static const size_t limit = std::max(AvailableMemory("/"), kAlwaysAllowed);
  return limit;
}

size_t MemoryBudget::LimitFor(size_t total) const {
  if (limit_ != 0) return limit_;
  return total <= kAlwaysAllowed ? kAlwaysAllowed : DefaultLimit();
}

void MemoryBudget::Take(size_t bytes) {
  const size_t total = used_ + bytes, limit = LimitFor(total);
  if (total < bytes || total > limit)
    throw Exceeded(fmt::format("{} bytes are needed, {} are in use, and the memory limit is {} bytes", bytes,
                               used_, limit));
  used_ = total;
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
