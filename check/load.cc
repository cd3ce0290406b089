// SPDX-License-Identifier: Apache-2.0
// Group "load": the library is loaded and unloaded, as a host does it, and again and again.
#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "check/tests.h"
#include "host/graph/view.h"
#include "host/plugin/steps.h"

namespace fusebox::check {
namespace {

constexpr int kCycles = 100;
constexpr int kWarm = 20;
constexpr size_t kSmallestBlock = 24;  // of malloc

Finding Host(const Subject& subject) {
  Config config = subject.options.config;
  config.plugins.insert(config.plugins.begin(), subject.manifest.path);
  SetPlace("load", subject.manifest.id);
  const auto registry = Registry::Create(config);
  if (!registry) return Failed(registry.error().message);
  const Status loaded = (*registry)->LoadNamed();
  SetPlace("unload", subject.manifest.id);  // by the end of the registry
  return loaded ? Passed() : Failed(loaded.error().message);
}

// A host for load alone: it has no extensions and drops messages.
class HostForLoad {
 public:
  static inline const Attrs* options = nullptr;
  HostForLoad()
      : host_{.head = FBX_HEAD(fbx_host),
              .emit = NoMessage,
              .get_extension = NoExtension,
              .attrs = &AttrApi(),
              .options = AsAbi(*options),
              .name = AsAbi("fusebox"),
              .version = AsAbi("check"),
              .cancelled = NotCancelled} {}
  const fbx_host* abi() const { return &host_; }

 private:
  static const void* NoExtension(const fbx_host*, fbx_str) noexcept { return nullptr; }
  static void NoMessage(const fbx_host*, const fbx_diag*) noexcept {}
  static int32_t NotCancelled(const fbx_host*) noexcept { return 0; }
  fbx_host host_;
};

Result<Attrs> OptionsOf(const Manifest& manifest) {
  if (manifest.options_schema.empty()) return Attrs();
  FUSEBOX_ASSIGN(const JsonSchema schema, JsonSchema::Parse(manifest.options_schema));
  nlohmann::json value = nlohmann::json::object();
  schema.FillDefaults(value);
  auto attrs = AttrsFromJson(value);
  if (!attrs) return Invalid(attrs.error().what);
  return *std::move(attrs);
}

size_t EntriesOf(const char* folder) {
  std::error_code error;
  size_t count = 0;
  for (auto it = std::filesystem::directory_iterator(folder, error); !error && it != decltype(it)();
       it.increment(error))
    ++count;
  return count;
}

struct Usage {
  size_t memory, threads, descriptors;
  static Usage Now() {
    const struct mallinfo2 info = mallinfo2();
    return {info.uordblks + info.hblkhd, EntriesOf("/proc/self/task"), EntriesOf("/proc/self/fd")};
  }
};

// Loads and unloads. Returns the error, or an empty string.
std::string LoadOnce(const fbx_entry& entry, const std::string& path) {
  static const HostForLoad host;
  const fbx_plugin* plugin = nullptr;
  SetPlace("load", path);
  const fbx_status status = entry.load(host.abi(), &plugin);
  if (status != FBX_OK || plugin == nullptr) return "load returned status " + std::to_string(status);
  SetPlace("unload", path);
  if (entry.unload != nullptr) entry.unload();
  return {};
}

// Calls `cycle` 100 times; the memory that one of them leaks, in `leaked`.
template <class OneCycle>
Finding Repeat(const OneCycle& cycle, size_t& leaked) {
  Usage at[3] = {};
  for (int i = 0; i < kCycles; ++i) {
    if (const std::string why = cycle(); !why.empty())
      return Failed("in cycle " + std::to_string(i + 1) + ": " + why);
    if (i == kWarm) at[0] = Usage::Now();
    if (i == (kCycles + kWarm) / 2) at[1] = Usage::Now();
  }
  at[2] = Usage::Now();
  if (at[2].threads > at[0].threads) return Failed("each load leaves a thread, which runs on after unload");
  if (at[2].descriptors > at[0].descriptors) return Failed("each load leaves an open file");
  const size_t each = 2 * (at[2].memory - std::min(at[1].memory, at[2].memory)) / (kCycles - kWarm);
  leaked = at[1].memory > at[0].memory && each >= kSmallestBlock ? each : 0;
  return Passed();
}

Finding WithEntry(const Subject& subject, const std::function<Finding(const std::string& path)>& check) {
  const Manifest& manifest = subject.manifest;
  if (manifest.library.empty()) return NotTested("the plugin has no library for this machine");
  for (const std::string& extension : manifest.requires_extensions)
    if (!extension.starts_with("fusebox.") && !extension.ends_with('?'))
      return NotTested("load may need extension " + extension + " of another plugin");
  const auto options = OptionsOf(manifest);
  if (!options) return Failed(options.error().message);
  HostForLoad::options = &*options;
  return check(manifest.library);
}

Finding Cycles(const Subject& subject) {
  return WithEntry(subject, [](const std::string& path) {
    const auto entry = OpenLibrary(path);
    if (!entry) return Failed(entry.error().message);
    size_t leaked = 0;
    Finding finding = Repeat([&] { return LoadOnce(**entry, path); }, leaked);
    if (finding.state == Row::State::kPassed && leaked > 0)
      return Failed("each load and unload leaks " + std::to_string(leaked) + " bytes");
    return finding;
  });
}

std::string OpenOnce(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return dlerror();
  const auto* const entry = static_cast<const fbx_entry*>(dlsym(handle, "fusebox_entry_v1"));
  if (entry == nullptr) return dlerror();
  std::string why = LoadOnce(*entry, path);
  SetPlace("dlclose", path);
  if (dlclose(handle) != 0) return dlerror();
  return why;
}

Finding Close(const Subject& subject) {
  return WithEntry(subject, [](const std::string& path) {
    size_t leaked = 0;
    Finding finding = Repeat([&] { return OpenOnce(path); }, leaked);
    if (finding.state != Row::State::kPassed) return finding;
    if (void* const still = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
      dlclose(still);
      return Passed("it stays mapped after dlclose, because of unique symbols or thread-local data");
    }
    // Often of a library that it needs. A host never closes one.
    return Passed(leaked == 0 ? "" : "each dlclose leaks " + std::to_string(leaked) + " bytes");
  });
}

constexpr std::array kLoadTests = {
    Test{"load.host", "loads, and matches its manifest", Test::Of::kPlugin, Host},
    Test{"load.cycles", "is loaded and unloaded 100 times without a leak", Test::Of::kPlugin, Cycles},
    Test{"load.dlclose", "is opened and closed 100 times", Test::Of::kPlugin, Close},
};

}  // namespace

std::span<const Test> LoadTests() { return kLoadTests; }

}  // namespace fusebox::check
