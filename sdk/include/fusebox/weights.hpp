// SPDX-License-Identifier: Apache-2.0
// PackedWeights: constants that a kernel packs once. If a plugin provides fusebox.weights/1, other kernels,
// processes and starts reuse them; otherwise they are on the heap, with the same bytes.
//
//   explicit Gemm(const Node& node)
//       : packed_(node, {.what = "gemm panels", .layout = SimdName(), .numbers = {panel_width},
//                        .sources = {node.in(1), node.in(2)}, .size = PackedSize(node)},
//                 [&](void* to) { Pack(node, to); }) {}
//   PackedWeights packed_;      // packed_.data<float>()
//
// Opening a model need not touch its weights: with LatePackedWeights, init or prepare packs only for a store,
// otherwise the first invoke does.
//
//   explicit Gemm(const Node& node) { if (keeps_weights(node.host())) PackOnce(node); }
//   void PackOnce(const Node& node) const {  // also at the start of invoke
//     packed_.make_once([&] { return PackedWeights(node, RecipeOf(node), ...); });
//   }
//   LatePackedWeights packed_;  // packed_->data<float>()
//
// In the manifest: "requires": {"extensions": ["fusebox.weights/1?", "fusebox.caller/1?"]}. The recipe
// lists the inputs of the packing code; the store adds what identifies plugin, build and sources
// (abi/ext/weights.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sys/mman.h>

#include "fusebox/abi/ext/caller.h"
#include "fusebox/abi/ext/weights.h"
#include "fusebox/node.hpp"

namespace fusebox::sdk {
inline namespace v1 {

// The inputs of packing code, which determine the packed bytes.
struct WeightsRecipe {
  std::string_view what;              // which packing code of the plugin
  std::string_view layout = {};       // what the bytes depend on in this machine
  std::vector<int64_t> numbers = {};  // options, versions and sizes that the packing code reads
  std::vector<Tensor> sources = {};   // constants that it reads
  size_t size = 0;                    // of the packed bytes
};

namespace detail {

// Returns NULL also outside of the phases of a store: a store would be of no use there, so it is not loaded.
inline const fbx_weights* weights_of(const fbx_host* host) {
  if (host->get_extension(host, to_fbx_str(FBX_EXT_CALLER)) == nullptr) return nullptr;
  const auto* store = static_cast<const fbx_weights*>(host->get_extension(host, to_fbx_str(FBX_EXT_WEIGHTS)));
  return FBX_HAS(store, release) && store->acquire && store->commit ? store : nullptr;
}

// Large weights are in huge pages, from which a product of one row reads them faster.
inline void* allocate_packed(size_t size, size_t alignment) {
  constexpr size_t huge_page = 2 << 20;
  const bool large = size >= 2 * huge_page;
  if (large) alignment = huge_page;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, std::max(size, alignment)) != 0) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  if (large) madvise(memory, size / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return memory;
}

inline bool acquire(const fbx_weights& store, const fbx_host* host, const WeightsRecipe& recipe,
                    const fbx_graph* graph, fbx_packed& packed) {
  std::vector<const fbx_tensor*> sources;
  for (const Tensor& source : recipe.sources) sources.push_back(source.abi());
  const fbx_weights_recipe abi{.head = FBX_HEAD(fbx_weights_recipe),
                               .what = to_fbx_str(recipe.what),
                               .layout = to_fbx_str(recipe.layout),
                               .numbers = recipe.numbers.data(),
                               .number_count = static_cast<uint32_t>(recipe.numbers.size()),
                               .source_count = static_cast<uint32_t>(sources.size()),
                               .sources = sources.data(),
                               .size = recipe.size,
                               .graph = graph};
  return store.acquire(host, &abi, &packed) == FBX_OK;
}

}  // namespace detail

class PackedWeights {
 public:
  static constexpr size_t kAlignment = 64;  // at least

  using Recipe = WeightsRecipe;

  // In a kernel's init or prepare. Calls `pack(void* to)`, which writes all `size` bytes, on a miss. If it
  // throws, nothing is stored.
  template <class Pack>
  PackedWeights(const Node& node, const Recipe& recipe, Pack&& pack) {
    using Function = std::remove_reference_t<Pack>;
    auto* const function = const_cast<void*>(static_cast<const void*>(std::addressof(pack)));
    fill(node.host(), recipe, [](void* f, void* to) { (*static_cast<Function*>(f))(to); }, function);
  }

  // Read-only.
  template <class T = void>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  bool kept() const { return kept_; }  // true: in a store; false: on the heap

 private:
  using Owner = std::unique_ptr<void, void (*)(void*) noexcept>;

  void fill(const fbx_host* host, const Recipe& recipe, void (*pack)(void* function, void* to),
            void* function) {
    if (recipe.size > PTRDIFF_MAX) throw std::bad_alloc();  // usually a negative size
    const fbx_weights* const store = detail::weights_of(host);
    fbx_packed packed{
        .head = FBX_HEAD(fbx_packed), .data = nullptr, .memory = nullptr, .handle = nullptr, .size = 0};
    if (store != nullptr && recipe.size > 0 && detail::acquire(*store, host, recipe, nullptr, packed)) {
      owner_ = Owner(packed.handle, store->release);
      if (packed.memory != nullptr) {
        pack(function, packed.memory);
        store->commit(&packed);
      }
      data_ = packed.data;
      kept_ = data_ != nullptr;
      if (kept_) return;
    }
    void* const memory = detail::allocate_packed(recipe.size, kAlignment);
    owner_ = Owner(memory, [](void* p) noexcept { std::free(p); });
    pack(function, memory);
    data_ = memory;
  }

  Owner owner_{nullptr, [](void*) noexcept {}};
  const void* data_ = nullptr;
  bool kept_ = false;
};

// In init or prepare: whether there is a store for this model, so that packing now spares later starts.
inline bool keeps_weights(const fbx_host* host) {
  const auto* store = static_cast<const fbx_weights*>(host->get_extension(host, to_fbx_str(FBX_EXT_WEIGHTS)));
  return FBX_HAS(store, keeps) ? store->keeps(host) != 0 : store && detail::weights_of(host);
}

// Weights that are packed when they are first used. Any thread.
class LatePackedWeights {
 public:
  // make() returns the PackedWeights. If it throws, the next call tries again.
  template <class Make>
  void make_once(const Make& make) const {
    if (made()) return;
    const std::lock_guard lock(mutex_);  // no system call where nobody waits
    if (made()) return;
    packed_.emplace(make());
    made_.store(true, std::memory_order_release);
  }
  bool made() const { return made_.load(std::memory_order_acquire); }
  const PackedWeights* operator->() const { return &*packed_; }  // if made

 private:
  mutable std::mutex mutex_;
  mutable std::atomic<bool> made_ = false;
  mutable std::optional<PackedWeights> packed_;
};

}  // namespace v1
}  // namespace fusebox::sdk
