// SPDX-License-Identifier: Apache-2.0
#define BOOST_DLL_USE_STD_FS
#include <boost/dll/shared_library.hpp>
#include <map>
#include <mutex>

#include "host/base/log.h"
#include "host/plugin/steps.h"

namespace fusebox {
namespace {

constexpr const char* kEntryName = "fusebox_entry_v1";
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

Result<const fbx_entry*> OpenLibrary(const std::string& path) {
  using boost::dll::shared_library;
  // Never closed: threads and thread-local data of a plugin may outlive its users.
  static std::mutex mutex;
  static auto& open = *new std::map<std::string, shared_library>;
  const std::lock_guard lock(mutex);
  try {
    const auto found = open.find(path);
    if (found != open.end()) return &found->second.get<const fbx_entry>(kEntryName);
    if (const std::string why = CutOff(path); !why.empty()) return Invalid(why);
    if (const std::string sanitizer = ForeignSanitizer(path); !sanitizer.empty())
      return Unsupported("it is built with the " + sanitizer + " sanitizer, this host is not");
    shared_library library(path, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    shared_library& kept = open.emplace(path, std::move(library)).first->second;
    Log("loader").debug("opened {}", path);
    return &kept.get<const fbx_entry>(kEntryName);
  } catch (const std::bad_alloc&) {
    return Fail(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    const std::string machine = ForeignMachine(path);
    return NotFound(SystemMessage(error) + (machine.empty() ? "" : " (the library is for " + machine + ")"));
  }
}

Status CheckEntry(const fbx_entry& entry) {
  if (entry.magic != FBX_ENTRY_MAGIC)
    return Invalid(std::string(kEntryName) + " has a wrong magic number: it is not a Fusebox plugin");
  if (entry.major != FBX_ABI_MAJOR)
    return Unsupported("it is built for plugin ABI " + std::to_string(entry.major) + ", this host has " +
                       std::to_string(FBX_ABI_MAJOR));
  if (entry.size < kEntrySize)
    return Invalid(std::string(kEntryName) + " is " + std::to_string(entry.size) +
                   " bytes long, expected at least " + std::to_string(kEntrySize));
  if (entry.min_host_minor > FBX_ABI_MINOR)
    return Unsupported("it needs a host with plugin ABI 1." + std::to_string(entry.min_host_minor) +
                       ", this one has 1." + std::to_string(FBX_ABI_MINOR));
  constexpr uint32_t kSanitizers = FBX_BUILT_WITH_ASAN | FBX_BUILT_WITH_TSAN | FBX_BUILT_WITH_MSAN;
  const uint32_t foreign = entry.flags & kSanitizers & ~static_cast<uint32_t>(FBX_BUILD_FLAGS);
  if (foreign != 0)
    return Unsupported("it is built with the " + SanitizerNames(foreign) + " sanitizer, this host is not");
  if (entry.load == nullptr) return Invalid(std::string(kEntryName) + " has no load function");
  return {};
}

}  // namespace fusebox
