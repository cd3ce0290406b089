// SPDX-License-Identifier: Apache-2.0
#include "tests/plugins/kept_weights/counted_store.h"

#include <fusebox/abi/ext/weights.h>

#include <fusebox/plugin.hpp>
#include <map>
#include <memory>

StoreCounts store_counts;

namespace fusebox {
using namespace sdk;
namespace {

constexpr size_t kAlignment = 128;
struct alignas(kAlignment) Line {
  std::byte bytes[kAlignment];
};

// By recipe. A miss stays open until it is committed.
struct Entry {
  std::vector<Line> memory;
  bool committed = false;
};
std::map<std::string, std::unique_ptr<Entry>> entries;

std::string KeyOf(const fbx_weights_recipe& recipe) {
  std::string key(to_string_view(recipe.what));
  for (uint32_t i = 0; i < recipe.number_count; ++i) key += ' ' + std::to_string(recipe.numbers[i]);
  for (uint32_t i = 0; i < recipe.source_count; ++i) {
    const Tensor source(recipe.sources[i]);  // enough of it for these tests
    const auto bytes = static_cast<size_t>(source.count()) / (source.dtype() == FBX_I4 ? 2 : 1);
    key.append(source.data<const char>(), bytes);
  }
  return key + ' ' + std::to_string(recipe.size);
}

fbx_status Acquire(const fbx_host*, const fbx_weights_recipe* recipe, fbx_packed* packed) noexcept {
  if (!store_counts.open) return FBX_NOT_APPLICABLE;
  std::unique_ptr<Entry>& entry = entries[KeyOf(*recipe)];
  packed->handle = &store_counts;
  if (entry != nullptr && entry->committed) {
    ++store_counts.found;
    packed->data = entry->memory.data();
    return FBX_OK;
  }
  store_counts.packed.emplace_back(to_string_view(recipe->what));
  entry = std::make_unique<Entry>();
  entry->memory.resize((recipe->size + kAlignment - 1) / kAlignment);
  packed->memory = entry->memory.data();
  return FBX_OK;
}

void Commit(fbx_packed* packed) noexcept {
  for (auto& [key, entry] : entries)
    if (entry->memory.data() == packed->memory) entry->committed = true;
  packed->data = packed->memory;
  packed->memory = nullptr;
}

void Release(void*) noexcept {}
fbx_status Put(fbx_packed*, const void*, size_t) noexcept { return FBX_NOT_APPLICABLE; }
int Keeps(const fbx_host*) noexcept { return store_counts.open ? 1 : 0; }

constexpr fbx_weights kStore{FBX_HEAD(fbx_weights), Acquire, Commit, Release, Put, Keeps};

struct CountedStore {
  static constexpr std::string_view extension = FBX_EXT_WEIGHTS;
  static const void* table() noexcept { return &kStore; }
};

using Tables = detail::Tables<CountedStore>;
constexpr fbx_plugin kPlugin = detail::make_plugin(
    "k.store", "1.0.0", Tables::rule_table, Tables::kernel_table, Tables::delegate_table, Tables::services);
fbx_status Load(const fbx_host*, const fbx_plugin** out) noexcept {
  *out = &kPlugin;
  return FBX_OK;
}

}  // namespace
}  // namespace fusebox

constinit const fbx_entry kCountedStore = fusebox::sdk::detail::make_entry(&fusebox::Load);

void EmptyCountedStore() {
  fusebox::entries.clear();
  store_counts = {};
}
