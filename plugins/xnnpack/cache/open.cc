// SPDX-License-Identifier: Apache-2.0
// One store per path and process.
#include <unistd.h>

#include <map>

#include "plugins/xnnpack/cache/store_impl.h"

namespace fusebox::cache {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<StoreImpl>> stores;
};

// Never destroyed: sessions may live as long as the process.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

// Two openings with equal names share a store. A child process starts anew.
std::string NameOf(const Options& o) {
  Note ignored;
  std::string name = o.path == "auto" ? DefaultPath()
                     : o.path.starts_with(":memory") || o.mode == Mode::kAnonymous
                         ? ":memory"
                         : Canonical(o.path, ignored);
  for (const std::string& path : o.system) name += '\0' + path;
  for (const uint64_t part :
       {static_cast<uint64_t>(o.mode), static_cast<uint64_t>(o.verify), uint64_t{o.shippable},
        uint64_t{o.trust_memo}, uint64_t{o.durable}, o.max_bytes, o.min_free_bytes, uint64_t{o.dedup},
        static_cast<uint64_t>(o.build_wait_ms), static_cast<uint64_t>(getpid())})
    name += '\0' + std::to_string(part);
  return name + '\0' + o.writer;
}

}  // namespace

std::shared_ptr<Store> Store::Open(const Options& options) {
  if (options.path.empty() || options.mode == Mode::kOff) return std::make_shared<StoreImpl>(options);
  const std::string name = NameOf(options);
  Registry& registry = TheRegistry();
  // Held while the store is opened, so that a second session waits for it instead of opening its own.
  const std::lock_guard lock(registry.mutex);
  if (auto store = registry.stores[name].lock()) {
    store->Refresh();
    return store;
  }
  std::erase_if(registry.stores, [](const auto& item) { return item.second.expired(); });
  auto store = std::make_shared<StoreImpl>(options);
  registry.stores[name] = store;
  return store;
}

}  // namespace fusebox::cache
