// SPDX-License-Identifier: Apache-2.0
// PackProvider: the weights cache of one session that XNNPACK packs through: its callbacks over a
// ModelWeights store.
//
// XNNPACK identifies weights by address. Before an op is defined, its weights are registered with their
// recipe, and XNNPACK gets the returned address: one address has one recipe. On a cache hit the address has
// no memory behind it, because XNNPACK does not read it. Weights at unregistered addresses are packed and
// kept for their runtime only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/cache/writer.h"
#include "plugins/xnnpack/packing/pack_key.h"

namespace fusebox::xnnpack {

// Counters of a session, for explanations and tests.
struct PackStatistics {
  uint64_t bytes_found = 0;    // packed by an earlier start or another session, used in place
  uint64_t bytes_shared = 0;   // packed or found by this session for another use
  uint64_t bytes_packed = 0;   // packed now and stored
  uint64_t bytes_again = 0;    // found, but packed again: XNNPACK packs this op without look-up
  uint64_t bytes_private = 0;  // packed now, for one runtime
};

class PackProvider {
 public:
  // `apart`: a number unique among the providers of the store. Then every registration is packed separately.
  explicit PackProvider(std::shared_ptr<ModelWeights> weights, std::optional<uint64_t> apart = std::nullopt);
  PackProvider(const PackProvider&) = delete;
  ~PackProvider();

  xnn_weights_cache_t get() { return &callbacks_; }

  // Constants that packing reads.
  struct Source {
    const fbx_tensor* kernel = nullptr;
    const fbx_tensor* bias = nullptr;  // may be NULL
    // Converts the kernel to the form that XNNPACK packs, if it differs from the constant. The memory lives
    // until ForgetSources.
    std::function<std::vector<uint8_t>()> unpack;
    // XNNPACK packs this op without look-up.
    bool always_packed = false;
  };
  // The address to pass to XNNPACK for the kernel.
  const void* Register(Recipe recipe, const Source& source);

  // Keeps memory as `unpack` does, for constants that are read while ops are created, but not packed.
  const void* Hold(std::vector<uint8_t> bytes);
  // Returns the size in the model of the registered weights that XNNPACK will pack now.
  uint64_t bytes_to_pack() const;
  // Calls `packed` with its bytes for each of them; null: stop.
  void Watch(std::function<void(uint64_t bytes)> packed) { packed_ = std::move(packed); }
  // Look-ups in a cache on disk are spans of this host's call; null: stop.
  void Trace(const fbx_host* host) { traced_ = weights_->in_memory() ? nullptr : host; }
  // After a runtime was created or failed: invalidates registered addresses and frees unpacked kernels.
  void ForgetSources();
  // After all runtimes of the session were created: publishes the build. Later weights are another build.
  void Publish();

  // Returns how XNNPACK contradicts the cached weights, or an empty string. If it does, the last runtime must
  // not run.
  const std::string& poisoned() const { return poisoned_; }
  const PackStatistics& statistics() const { return statistics_; }

  struct Registered {
    cache::Key key;
    Recipe recipe;
    const fbx_tensor *kernel, *bias;
    bool always_packed;
    size_t index = SIZE_MAX;  // of the blob, if packed

    PackRequest request() const { return {recipe, kernel, bias}; }
  };
  // By address, since the last ForgetSources.
  const std::map<const void*, Registered>& registered() const { return registered_; }
  size_t SizeOf(size_t index) const { return blobs_[index].bytes.size(); }

 private:
  static PackProvider& Self(void* context) { return *static_cast<PackProvider*>(context); }
  size_t LookUp(const xnn_weights_cache_look_up_key& key);
  void* Reserve(size_t size);
  size_t LookUpOrInsert(const xnn_weights_cache_look_up_key& key, void* data, size_t size);
  size_t Insert(Registered& entry, uint32_t seed, void* data, size_t size);
  size_t Number(cache::Blob blob);
  void Poison(std::string why);
  const void* EmptyAddress();
  const void* AddressFor(const Source& source);

  const std::shared_ptr<ModelWeights> weights_;
  const std::unique_ptr<cache::Writer> writer_;
  const std::optional<uint64_t> apart_;
  uint64_t registrations_ = 0;
  xnn_weights_cache_provider callbacks_{};
  std::vector<cache::Blob> blobs_;  // by the offset passed to XNNPACK
  std::map<cache::Key, size_t> known_;
  std::map<const void*, Registered> registered_;
  std::map<cache::Key, const void*> addresses_;  // of registered_, by key
  std::vector<std::vector<uint8_t>> held_;
  std::vector<size_t> again_;  // sizes of known blobs that XNNPACK packs again
  std::function<void(uint64_t)> packed_;
  const fbx_host* traced_ = nullptr;
  std::string poisoned_;
  PackStatistics statistics_;
  char* empty_ = nullptr;  // address space without memory
  size_t empty_used_ = 0;
};

}  // namespace fusebox::xnnpack
