// SPDX-License-Identifier: Apache-2.0
#include "host/base/prefix.h"

#include <dlfcn.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#ifndef FUSEBOX_INSTALL_PREFIX
#define FUSEBOX_INSTALL_PREFIX "/usr/local"
#endif
#ifndef FUSEBOX_INSTALL_LIBDIR
#define FUSEBOX_INSTALL_LIBDIR "lib"
#endif

namespace fusebox {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraries = "/" FUSEBOX_INSTALL_LIBDIR;

// The folder of the library, or program, that holds this code.
std::string FolderOfCode() {
  Dl_info info{};
  std::error_code error;
  if (dladdr(reinterpret_cast<const void*>(&InstallPrefixes), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const fs::path file = fs::canonical(info.dli_fname, error);
  return error ? std::string() : file.parent_path().string();
}

// "/opt/fusebox" for "/opt/fusebox/lib/libfusebox.so.0"; empty if this code is in a program, or in a library
// in another kind of folder.
std::string PrefixOfLibrary() {
  const std::string folder = FolderOfCode();
  if (!folder.ends_with(kLibraries)) return {};
  return folder.substr(0, folder.size() - kLibraries.size());
}

// "/opt/fusebox" for "/opt/fusebox/bin/fusebox" and "/opt/fusebox/libexec/fusebox/fusebox-convert".
std::string PrefixOfProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error || getauxval(AT_SECURE) != 0) return {};
  const fs::path folder = program.parent_path();
  const bool helper = folder.filename() == "fusebox" && folder.parent_path().filename() == "libexec";
  return (helper ? folder.parent_path() : folder).parent_path().string();
}

}  // namespace

std::vector<std::string> InstallPrefixes() {
  std::vector<std::string> prefixes;
  for (std::string prefix : {PrefixOfLibrary(), PrefixOfProgram(), std::string(FUSEBOX_INSTALL_PREFIX)}) {
    if (!prefix.empty()) prefixes.push_back(std::move(prefix));
  }
  return prefixes;
}

std::vector<std::string> LibraryPaths(const std::string& file) {
  std::vector<std::string> paths;
  const std::string beside = getauxval(AT_SECURE) == 0 ? FolderOfCode() : std::string();
  if (!beside.empty()) paths.push_back(beside + "/" + file);
  for (const std::string& prefix : InstallPrefixes()) {
    for (const std::string_view folder : {kLibraries, std::string_view("/lib")}) {
      std::string path = prefix + std::string(folder) + "/" + file;
      if (std::ranges::find(paths, path) == paths.end()) paths.push_back(std::move(path));
    }
  }
  return paths;
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
