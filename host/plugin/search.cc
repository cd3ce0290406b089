// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "host/base/prefix.h"
#include "host/plugin/seal.h"
#include "host/plugin/steps.h"

// Relative to an installation's prefix.
#ifndef FUSEBOX_INSTALL_LIBDIR
#define FUSEBOX_INSTALL_LIBDIR "lib"
#endif

namespace fusebox {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifestName = "fusebox-plugin.json";

std::string Environment(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

std::vector<std::string> SplitPath(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    // Skips empty parts: they would mean the working directory, which is never searched.
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void AddUserFolder(std::vector<std::string>& folders) {
  const std::string data = Environment("XDG_DATA_HOME");
  const std::string home = Environment("HOME");
  if (!data.empty()) {
    folders.push_back(data + "/fusebox/plugins");
  } else if (!home.empty()) {
    folders.push_back(home + "/.local/share/fusebox/plugins");
  }
}

constexpr std::string_view kInstalled = "/" FUSEBOX_INSTALL_LIBDIR "/fusebox/plugins";

void AddSystemFolders(std::vector<std::string>& folders) {
  folders.push_back("/etc/fusebox/plugins");
  for (const std::string& folder : InstalledPlugins()) folders.push_back(folder);
  folders.push_back("/usr/local" + std::string(kInstalled));
}

std::vector<std::string> Folders(const Config& config) {
  std::vector<std::string> folders;
  if (config.search_default_path && secure_getenv("FUSEBOX_PLUGIN_PATH"))
    return SplitPath(Environment("FUSEBOX_PLUGIN_PATH"));
  if (config.search_default_path) folders = SplitPath(Environment("FUSEBOX_ADD_PLUGIN_PATH"));
  folders.insert(folders.end(), config.plugin_path.begin(), config.plugin_path.end());
  if (config.search_default_path) {
    AddUserFolder(folders);
    AddSystemFolders(folders);
  }
  return folders;
}

bool Exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

// The manifest of a plugin's folder; else the manifests one level below, sorted.
std::vector<std::string> ManifestsIn(const fs::path& folder) {
  std::vector<std::string> manifests;
  std::error_code error;
  if (const std::string own = (folder / kManifestName).string(); Exists(own)) {
    manifests.push_back(own);
    // Anybody can write one into a folder of plugins with the sticky bit. It does not hide the others.
    if (Owners().Check(own)) return manifests;
  }
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string manifest = it->path().native() + "/" + kManifestName;
    if (Exists(manifest)) manifests.push_back(std::move(manifest));
  }
  std::sort(manifests.begin(), manifests.end());
  return manifests;
}

// Adds the plugins of one --plugin: a manifest, a library, a plugin's folder, or a folder of such folders.
Status AddNamed(const std::string& text, SearchResult& result) {
  std::error_code error;
  const fs::path path(text);
  if (!fs::exists(path, error))
    return NotFound("plugin " + text + ": " + (error ? error.message() : "no such file or folder"));
  if (!fs::is_directory(path, error)) {
    const bool manifest = path.extension() == ".json";
    fs::path beside = path.parent_path() / kManifestName;
    // One folder may hold libraries for several platforms: linux-x86_64/my_op.so.
    if (!fs::exists(beside, error)) beside = (path.parent_path() / ".." / kManifestName).lexically_normal();
    if (!manifest && !fs::exists(beside, error))
      return NotFound("plugin " + text + ": no " + kManifestName + " in its folder or the one above");
    result.found.push_back({manifest ? text : beside.string(), true});
    if (manifest) return {};
    FUSEBOX_ASSIGN(const Manifest read, ReadManifest(beside.string()));
    if (!read.library.empty() && !fs::equivalent(read.library, path, error))
      return Invalid("plugin " + text + ": the manifest in its folder is for " + read.library);
    return {};
  }
  result.searched.push_back(text);
  FUSEBOX_ASSIGN(const std::vector<std::string> manifests, ManifestsOf(text).At("plugin " + text));
  for (const std::string& manifest : manifests)
    result.found.push_back({manifest, manifest == (path / kManifestName).string()});
  return {};
}

}  // namespace

Result<std::vector<std::string>> ManifestsOf(const std::string& folder) {
  std::vector<std::string> manifests = ManifestsIn(folder);
  if (manifests.empty())
    return NotFound(std::string("neither it nor a subfolder contains a ") + kManifestName);
  return manifests;
}

std::vector<std::string> InstalledPlugins() {
  std::vector<std::string> folders = InstallPrefixes();
  for (std::string& folder : folders) folder += kInstalled;
  return folders;
}

std::vector<std::string> PolicyFiles() {
  std::vector<std::string> files = {"/etc/fusebox/policy.json"};
  if (std::string file = UserPolicyFile(); !file.empty()) files.push_back(std::move(file));
  return files;
}

std::string UserPolicyFile() {
  const std::string config = Environment("XDG_CONFIG_HOME");
  const std::string home = Environment("HOME");
  if (config.empty() && home.empty()) return {};
  return (config.empty() ? home + "/.config" : config) + "/fusebox/policy.json";
}

Result<SearchResult> Search(const Config& config) {
  SearchResult result;
  for (const std::string& text : config.plugins) FUSEBOX_TRY(AddNamed(text, result));
  std::vector<std::string> seen;
  for (const std::string& folder : Folders(config)) {
    if (std::find(seen.begin(), seen.end(), folder) != seen.end()) continue;
    seen.push_back(folder);
    std::error_code error;
    result.searched.push_back(folder + (fs::is_directory(folder, error) ? "" : " (no such folder)"));
    for (const std::string& manifest : ManifestsIn(folder)) result.found.push_back({manifest, false});
  }
  return result;
}

}  // namespace fusebox
