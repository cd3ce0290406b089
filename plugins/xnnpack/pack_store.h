// SPDX-License-Identifier: Apache-2.0
// Where packed weights live, as the provider sees it: in memory shared by the sessions of a model, or in a WeightStore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fusebox/base.hpp>

#include "plugins/xnnpack/cache/digest.h"
#include "plugins/xnnpack/fingerprint.h"
#include "plugins/xnnpack/pack_note.h"
#include "plugins/xnnpack/recipes.h"
#include "plugins/xnnpack/cache/weight_store.h"

namespace fusebox::xnnpack {

struct PackedBlob {
  void* data = nullptr;  // never written after it was inserted
  size_t size = 0;
};

// Weights, and how they are packed. `bias` may be NULL.
struct PackRequest {
  const Recipe& recipe;
  const fbx_tensor* kernel;
  const fbx_tensor* bias;
};

// All but what takes digests of the weights: PackNote::source is empty.
PackNote DescribePack(const Fingerprints& fingerprints, const PackRequest& request);

// One session's use of a store: by one thread at a time. What it handed out lives as long as it does.
class PackWriter {
 public:
  virtual ~PackWriter() = default;
  virtual std::optional<PackedBlob> Find(const cache::Key& key) = 0;
  // 128-byte aligned memory to pack into; NULL: none. Each ends in Insert, Keep or Discard before the next one.
  virtual void* Reserve(size_t size) = 0;
  // The same for what is packed once more and not needed: ends in Keep or Discard.
  virtual void* ReserveScratch(size_t size) = 0;
  // The reserved bytes under a key, or those that another session inserted meanwhile.
  virtual PackedBlob Insert(const cache::Key& key, void* reserved, size_t size, const PackRequest& request,
                            const Fingerprints& fingerprints, uint32_t seed) = 0;
  // The reserved bytes for this session alone.
  virtual PackedBlob Keep(void* reserved, size_t size) = 0;
  virtual void Discard(void* reserved) = 0;
  // The entry does not fit what asked for it: never found again.
  virtual void Distrust(const cache::Key& key) = 0;
  // All that is needed by now has been inserted.
  virtual void Commit() = 0;
};

// Thread-safe.
class PackStore {
 public:
  virtual ~PackStore() = default;
  virtual std::unique_ptr<PackWriter> Open() = 0;
  virtual cache::Key KeyOf(const Fingerprints& fingerprints, const PackRequest& request) = 0;
  // The constant has been packed: it will hardly be read again.
  virtual void Packed(const fbx_tensor& constant) = 0;
  // Why what is packed is not kept, as far as is known by now; told once. Empty: it is kept, or nobody asked for that.
  virtual std::string WhyNotKept() { return {}; }
  // What is kept beside an entry of this request, for people who ask why another one is not found.
  virtual PackNote NoteOf(const Fingerprints& fingerprints, const PackRequest& request) = 0;
};

// Anonymous memory, for the sessions of one model. Constants are told apart by their address, which costs nothing: they live
// as long as the model does.
std::shared_ptr<PackStore> MakeMemoryStore();

// The WeightStore of a `weight_cache_path` that is not empty: one object per process for equal paths. `share`: the delegate's
// option share_weights.
std::shared_ptr<cache::Store> OpenWeightStore(const std::string& path, bool share,
                                              cache::Mode mode = cache::Mode::kReadWrite);

// A WeightStore. Constants are told apart by their contents.
std::shared_ptr<PackStore> MakeFileStore(std::shared_ptr<cache::Store> store);

}  // namespace fusebox::xnnpack
