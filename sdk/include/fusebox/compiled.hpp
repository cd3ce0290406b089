// SPDX-License-Identifier: Apache-2.0
// CompiledPartition: the bytes that a delegate compiles a partition to. If a plugin provides
// fusebox.weights/1, other sessions, processes and starts reuse them.
//
//   Partition(Device& device, const Graph& graph)
//       : compiled_(graph, {.what = "program", .layout = device.target(), .numbers = {kVersion, device.level()}},
//                   [&] { return Compile(graph, device); }) { Load(compiled_.bytes()); }
//   CompiledPartition compiled_;
//
// The graph is part of the key; the recipe names the rest: version of the compiler, options, target. In the
// manifest: "requires": {"extensions": ["fusebox.weights/1?", "fusebox.caller/1?"]}.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "fusebox/delegate.hpp"
#include "fusebox/weights.hpp"

namespace fusebox::sdk {
inline namespace v1 {

class CompiledPartition {
 public:
  // In compile. Calls `compile()`, which returns std::vector<std::byte>, on a miss. `size` of the recipe is
  // not used. Bytes from a store are aligned to 128, others to alignof(std::max_align_t).
  template <class Compile>
  CompiledPartition(const Graph& graph, WeightsRecipe recipe, Compile&& compile) {
    recipe.size = 0;
    const fbx_weights* const store = detail::weights_of(graph.host());
    fbx_packed packed{
        .head = FBX_HEAD(fbx_packed), .data = nullptr, .memory = nullptr, .handle = nullptr, .size = 0};
    const bool stores =
        FBX_HAS(store, put) && detail::acquire(*store, graph.host(), recipe, graph.abi(), packed);
    if (stores) {
      owner_ = Owner(packed.handle, store->release);
      found_ = packed.data != nullptr;
    }
    if (!found_) {
      own_ = compile();
      const bool put = stores && !own_.empty() && store->put(&packed, own_.data(), own_.size()) == FBX_OK;
      bytes_ = own_;
      if (!put || packed.data == nullptr) return;
      own_ = {};
    }
    bytes_ = {static_cast<const std::byte*>(packed.data), packed.size};
  }

  std::span<const std::byte> bytes() const { return bytes_; }  // read-only
  bool found() const { return found_; }                        // in the store; `compile` was not called

 private:
  using Owner = std::unique_ptr<void, void (*)(void*) noexcept>;

  Owner owner_{nullptr, [](void*) noexcept {}};
  std::vector<std::byte> own_;  // empty: in the store
  std::span<const std::byte> bytes_;
  bool found_ = false;
};

}  // namespace v1
}  // namespace fusebox::sdk
