// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/names.h"

#include <algorithm>
#include <filesystem>

namespace fusebox::bench {

std::vector<std::string> NamesOf(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  std::vector<std::filesystem::path> folders;
  for (const std::string& file : files) {
    names.push_back(std::filesystem::path(file).stem().string());
    folders.push_back(std::filesystem::path(file).parent_path());
  }
  for (bool again = true; again;) {
    again = false;
    const std::vector<std::string> before = names;
    for (size_t i = 0; i < names.size(); ++i) {
      if (std::ranges::count(before, before[i]) < 2 || folders[i].filename().empty()) continue;
      names[i] = folders[i].filename().string() + "/" + names[i];
      folders[i] = folders[i].parent_path();
      again = true;
    }
  }
  return names;
}

}  // namespace fusebox::bench
