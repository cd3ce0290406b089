// SPDX-License-Identifier: Apache-2.0
// Which memory asked for huge pages.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace fusebox {

// Whether the mapping with this address did; nothing where the system does not say.
inline std::optional<bool> AsksForHugePages(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) here = begin <= wanted && wanted < end;
    if (!here || !line.starts_with("VmFlags:")) continue;
    return (line + " ").find(" hg ") != std::string::npos;
  }
  return std::nullopt;
}

}  // namespace fusebox
