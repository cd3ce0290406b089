// SPDX-License-Identifier: Apache-2.0
// The weights cache that XNNPACK packs through, for one session: its six callbacks over a PackStore.
//
// XNNPACK names weights by address. Whoever defines an op registers its weights with their recipe first, and
// gives XNNPACK the address that comes back: one address has one recipe. Weights that are packed already get
// an address behind which there is nothing, for XNNPACK does not read them. Addresses that nobody registered
// are packed and kept for their runtime alone.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <xnnpack.h>

#include "plugins/xnnpack/cache/writer.h"
#include "plugins/xnnpack/pack_key.h"

namespace fusebox::xnnpack {

// What a session's provider did, for explanations and tests.
struct PackStatistics {
  uint64_t bytes_found = 0;    // packed by others (an earlier start, another session), used in place
  uint64_t bytes_shared = 0;   // packed or found by this session for another use
  uint64_t bytes_packed = 0;   // packed now, and kept for others
  uint64_t bytes_again = 0;    // found, but packed again all the same: XNNPACK packs this op without looking
  uint64_t bytes_private = 0;  // packed now, for one runtime alone
};

class PackProvider {
 public:
  // `apart`: a number that no other provider of the store has. Then every registration is packed for itself.
  explicit PackProvider(std::shared_ptr<ModelWeights> weights, std::optional<uint64_t> apart = std::nullopt);
  PackProvider(const PackProvider&) = delete;
  ~PackProvider();

  xnn_weights_cache_t get() { return &callbacks_; }

  // Constants as packing reads them.
  struct Source {
    const fbx_tensor* kernel = nullptr;
    const fbx_tensor* bias = nullptr;  // may be NULL
    // The kernel in the form that XNNPACK packs, where that is not the constant as it stands. The memory
    // lives until ForgetSources.
    std::function<std::vector<uint8_t>()> unpack;
    // XNNPACK packs this op without looking first.
    bool always_packed = false;
  };
  // The address to give to XNNPACK for the kernel.
  const void* Register(Recipe recipe, const Source& source);

  // Memory of the kind that `unpack` yields, for constants that are read while ops are made and not packed.
  const void* Hold(std::vector<uint8_t> bytes);
  // Of the registered weights that XNNPACK will pack now, as they stand in the model.
  uint64_t bytes_to_pack() const;
  // Called with the same count for each of them that is packed; null: no more.
  void Watch(std::function<void(uint64_t bytes)> packed) { packed_ = std::move(packed); }
  // After a runtime was made or given up: registered addresses lose their meaning, and unpacked kernels their
  // memory.
  void ForgetSources();
  // After all runtimes of the session are made: publishes the build. Later weights are another build.
  void Publish();

  // Not empty: XNNPACK contradicted what the cache holds. The runtime made last must not run.
  const std::string& poisoned() const { return poisoned_; }
  const PackStatistics& statistics() const { return statistics_; }

  struct Registered {
    cache::Key key;
    Recipe recipe;
    const fbx_tensor *kernel, *bias;
    bool always_packed;
    size_t index = SIZE_MAX;  // of the blob, where it is packed

    PackRequest request() const { return {recipe, kernel, bias}; }
  };
  // By address; since the last ForgetSources.
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
  std::vector<cache::Blob> blobs_;  // by the offset that XNNPACK knows
  std::map<cache::Key, size_t> known_;
  std::map<const void*, Registered> registered_;
  std::map<cache::Key, const void*> addresses_;  // of registered_, by key
  std::vector<std::vector<uint8_t>> held_;
  std::vector<size_t> again_;  // sizes of blobs that XNNPACK will pack though they are known
  std::function<void(uint64_t)> packed_;
  std::string poisoned_;
  PackStatistics statistics_;
  char* empty_ = nullptr;  // address space without memory
  size_t empty_used_ = 0;
};

}  // namespace fusebox::xnnpack
