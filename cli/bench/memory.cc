// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/memory.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace fusebox::cli {
namespace {

// Returns the bytes of a line "Key:   123 kB", or 0 for another line.
size_t Kilobytes(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return 0;
  line.remove_prefix(line.find_first_of("0123456789", key.size()));
  size_t value = 0;
  std::from_chars(line.data(), line.data() + line.size(), value);
  return value * 1024;
}

size_t OfStatus(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (const size_t bytes = Kilobytes(line, key); bytes > 0) return bytes;
  return 0;
}

// A segment of a directory, or a file with the folder FILE.d beside it.
bool IsCache(const std::string& mapping) {
  if (mapping.ends_with(".fbpk")) return true;
  const size_t path = mapping.find('/');
  std::error_code error;
  return path != std::string::npos && std::filesystem::is_directory(mapping.substr(path) + ".d", error);
}

}  // namespace

size_t ResidentBytes() { return OfStatus("VmRSS:"); }
size_t PeakResidentBytes() { return OfStatus("VmHWM:"); }

size_t CachePages() {
  std::ifstream maps("/proc/self/smaps");
  size_t bytes = 0;
  bool cache = false;
  for (std::string line; std::getline(maps, line);) {
    const bool mapping = line.find('-') < line.find(' ');
    if (mapping) cache = IsCache(line);
    else if (cache) bytes += Kilobytes(line, "Rss:");
  }
  return bytes;
}

}  // namespace fusebox::cli
