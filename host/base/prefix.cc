// SPDX-License-Identifier: Apache-2.0
#include "host/base/prefix.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>

#ifndef FUSEBOX_INSTALL_PREFIX
#define FUSEBOX_INSTALL_PREFIX "/usr/local"
#endif

// The prefix that the program was built against, set by find_package(fusebox)
// (cmake/fusebox-config.cmake.in).
extern "C" [[gnu::weak]] const char fusebox_prefix[];

namespace fusebox {
namespace fs = std::filesystem;

std::vector<std::string> InstallPrefixes() {
  std::vector<std::string> prefixes;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error && getauxval(AT_SECURE) == 0) {
    const fs::path folder = program.parent_path();  // bin or libexec/fusebox
    const bool helper = folder.filename() == "fusebox" && folder.parent_path().filename() == "libexec";
    prefixes.push_back((helper ? folder.parent_path() : folder).parent_path().string());
  }
  if (const char* prefix = fusebox_prefix; prefix != nullptr) prefixes.emplace_back(prefix);
  prefixes.emplace_back(FUSEBOX_INSTALL_PREFIX);
  return prefixes;
}

Result<std::string> FindHelperProgram(const std::string& name) {
  std::string tried;
  for (const std::string& prefix : InstallPrefixes()) {
    const std::string path = prefix + "/libexec/fusebox/" + name;
    if (access(path.c_str(), X_OK) == 0) return path;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  return NotFound("the program " + name + " is not installed (tried " + tried + "); reinstall Fusebox");
}

}  // namespace fusebox
