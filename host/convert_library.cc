// SPDX-License-Identifier: Apache-2.0
#include "host/convert_library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <mutex>

#include "host/base/log.h"
#include "host/base/prefix.h"

// A program that is linked with the converter has these; a second copy of its protobuf files would abort.
#pragma weak fusebox_convert_bytes
#pragma weak fusebox_convert_free

namespace fusebox {
namespace {

constexpr const char* kFile = "libfusebox-convert.so." FUSEBOX_SOVERSION;
constexpr const char* kPackage = "libfusebox-convert" FUSEBOX_SOVERSION;

// Warnings about plugins come from the host's own registry too.
void ForwardLine(void*, int32_t level, const char* topic, const char* text) {
  const std::string_view name = topic;
  if (name == "loader" || name == "config") return;
  if (level >= FUSEBOX_LOG_WARNING) Log(name).warn("{}", text);
  else Log(name).debug("{}", text);
}

// A handle of dlopen.
Result<void*> OpenConvertLibrary() {
  const std::vector<std::string> paths = LibraryPaths(kFile);
  for (const std::string& path : paths) {
    if (access(path.c_str(), R_OK) != 0) continue;
    // A file needs few functions of its libraries; to find all of them takes 10 ms.
    if (void* const handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) return handle;
    return Unsupported(fmt::format("the converter cannot be loaded: {}", dlerror()));
  }
  if (void* const handle = dlopen(kFile, RTLD_LAZY | RTLD_LOCAL)) return handle;
  return NotFound(
      fmt::format("it holds ops of TensorFlow, which {} translates, and that is not installed "
                  "(searched: {}, and the folders of the system); install the package {}",
                  kFile, fmt::join(paths, ", "), kPackage));
}

template <class T>
bool Find(void* handle, const char* name, T& function) {
  function = reinterpret_cast<T>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

Result<const ConvertLibrary*> LoadConvertLibrary() {
  static std::mutex mutex;
  static ConvertLibrary library = {};
  const std::lock_guard lock(mutex);
  if (library.convert_bytes != nullptr) return &library;
  if (fusebox_convert_bytes != nullptr && fusebox_convert_free != nullptr) {
    library = {fusebox_convert_bytes, fusebox_convert_free};
    return &library;
  }
  const bool program_has_it = dlopen(kFile, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  FUSEBOX_ASSIGN(void* const handle, OpenConvertLibrary());
  ConvertLibrary found = {};
  decltype(&fusebox_convert_set_log_sink) set_log_sink = nullptr;
  if (!Find(handle, "fusebox_convert_bytes", found.convert_bytes) ||
      !Find(handle, "fusebox_convert_free", found.free) ||
      !Find(handle, "fusebox_convert_set_log_sink", set_log_sink)) {
    dlclose(handle);
    return Unsupported(
        fmt::format("{} is too old: it has no function fusebox_convert_bytes; install the "
                    "package {} of this version",
                    kFile, kPackage));
  }
  if (!program_has_it) set_log_sink(ForwardLine, nullptr, nullptr);
  library = found;
  return &library;
}

}  // namespace fusebox
