// SPDX-License-Identifier: Apache-2.0
#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <map>
#include <mutex>

#include "host/base/log.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

constexpr const char* kEntryName = "fusebox_entry_v1";
constexpr std::string_view kOtherBuild = "; use a build of it without the sanitizer";
// Minimum size: up to the last member of version 1.0.
constexpr size_t kEntrySize = offsetof(fbx_entry, unload) + sizeof(fbx_entry::unload);

// The dlopen or dlsym part of Boost's message.
std::string SystemMessage(const std::exception& error) {
  constexpr std::string_view kBefore = "(dlerror system message: ";
  const std::string_view text = error.what();
  const size_t at = text.find(kBefore);
  if (at == std::string_view::npos) return std::string(text);
  const std::string_view rest = text.substr(at + kBefore.size());
  return std::string(rest.substr(0, rest.rfind(')')));
}

// Returns what to do about an error of dlopen or dlsym.
std::string Remedy(const std::string& path, const std::string& why) {
  const std::string machine = ForeignMachine(path);
  if (!machine.empty()) return " (the library is for " + machine + "); use a build of it for this machine";
  if (why.ends_with(std::string("undefined symbol: ") + kEntryName))
    return "; define the entry with FUSEBOX_PLUGIN, and export it";
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return "; build the library, or correct \"libraries\" in the manifest";
  if (why.find("undefined symbol: ") != std::string::npos)
    return "; link the library that defines the symbol";
  if (why.find("cannot open shared object file") != std::string::npos)
    return "; install the missing library, or add its folder to LD_LIBRARY_PATH";
  return "; build the library again";
}

std::string SanitizerNames(uint32_t flags) {
  std::string names;
  for (const auto& [bit, name] :
       {std::pair(FBX_BUILT_WITH_ASAN, "address"), std::pair(FBX_BUILT_WITH_TSAN, "thread"),
        std::pair(FBX_BUILT_WITH_MSAN, "memory")}) {
    if (flags & static_cast<uint32_t>(bit)) names += std::string(names.empty() ? "" : ", ") + name;
  }
  return names;
}

}  // namespace

namespace {

// Opens `file`, with `path` in messages, unless a library is open under the key. Of a plugin: its entry.
Result<const fbx_entry*> OpenFile(const std::string& path, const std::string& file, const std::string& key,
                                  bool plugin, bool& opened) {
  using boost::dll::shared_library;
  // Never closed: threads and thread-local data of a plugin may outlive its users.
  static std::mutex mutex;
  static auto& open = *new std::map<std::string, shared_library>;
  const std::lock_guard lock(mutex);
  const auto entry = [&](const shared_library& library) {
    return plugin ? &library.get<const fbx_entry>(kEntryName) : nullptr;
  };
  try {
    const auto found = open.find(key);
    if (found != open.end()) return entry(found->second);
    if (const auto bytes = MapFile(file)) {
      if (const std::string why = CutOff(*bytes); !why.empty()) return Invalid(why);
      if (const std::string sanitizer = ForeignSanitizer(*bytes); !sanitizer.empty())
        return Unsupported("it is built with the " + sanitizer + " sanitizer, this host is not" +
                           std::string(kOtherBuild));
    }
    shared_library library(file, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    opened = true;
    shared_library& kept = open.emplace(key, std::move(library)).first->second;
    Log("loader").debug("opened {}", path);
    return entry(kept);
  } catch (const std::bad_alloc&) {
    return Fail(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    std::string why = SystemMessage(error);
    if (why.starts_with(file)) why.replace(0, file.size(), path);
    else if (!why.starts_with(path)) why.insert(0, path + ": ");
    return NotFound(why + Remedy(path, why));
  }
}

// The same with a copy that meets the demands.
Result<const fbx_entry*> OpenCopy(const std::string& path, const std::vector<LibraryDemand>& demands,
                                  bool plugin) {
  bool opened = false;
  FUSEBOX_ASSIGN(PrivateCopy copy, CopyPrivately(path));
  FUSEBOX_TRY(CheckDemands(demands, path, copy.sha256));
  auto entry = OpenFile(path, copy.path, copy.sha256 + " " + path, plugin, opened);
  // dlopen takes a second library of the same name for the first one, so that the name must stay in use.
  if (opened) copy.file.Release();
  return entry;
}

}  // namespace

Result<const fbx_entry*> OpenLibrary(const std::string& path, const std::vector<LibraryDemand>& demands,
                                     const std::vector<BundledLibrary>& bundled) {
  bool opened = false;
  std::error_code error;
  if (demands.empty() || !std::filesystem::exists(path, error))
    return OpenFile(path, path, path, true, opened);
  // An open library satisfies those that need its name.
  for (const BundledLibrary& library : bundled) FUSEBOX_TRY(OpenCopy(library.path, {library.demand}, false));
  return OpenCopy(path, demands, true);
}

Status CheckEntry(const fbx_entry& entry) {
  if (entry.magic != FBX_ENTRY_MAGIC)
    return Invalid(std::string(kEntryName) +
                   " has a wrong magic number: it is not a Fusebox plugin; define it " +
                   "with FUSEBOX_PLUGIN, or set FBX_ENTRY_MAGIC");
  if (entry.major != FBX_ABI_MAJOR)
    return Unsupported("it is built for plugin ABI " + std::to_string(entry.major) + ", this host has " +
                       std::to_string(FBX_ABI_MAJOR) + "; use a build for this one");
  if (entry.size < kEntrySize)
    return Invalid(std::string(kEntryName) + " is " + std::to_string(entry.size) +
                   " bytes long, expected at least " + std::to_string(kEntrySize) +
                   "; set its size to sizeof(fbx_entry)");
  if (entry.min_host_minor > FBX_ABI_MINOR)
    return Unsupported("it needs a host with plugin ABI 1." + std::to_string(entry.min_host_minor) +
                       ", this one has 1." + std::to_string(FBX_ABI_MINOR) + "; use a newer Fusebox");
  constexpr uint32_t kSanitizers = FBX_BUILT_WITH_ASAN | FBX_BUILT_WITH_TSAN | FBX_BUILT_WITH_MSAN;
  const uint32_t foreign = entry.flags & kSanitizers & ~static_cast<uint32_t>(FBX_BUILD_FLAGS);
  if (foreign != 0)
    return Unsupported("it is built with the " + SanitizerNames(foreign) + " sanitizer, this host is not" +
                       std::string(kOtherBuild));
  if (entry.load == nullptr) return Invalid(std::string(kEntryName) + " has no load function; set load");
  return {};
}

}  // namespace fusebox
