// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "plugins/xnnpack/pack_store.h"

namespace fusebox::xnnpack {

namespace {

constexpr size_t kAlignment = 128;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, Free>;

Memory Allocate(size_t size) {
  return Memory(std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment));
}

void Append(std::string& text, const fbx_tensor* constant) {
  const void* data = constant != nullptr ? constant->data : nullptr;
  const size_t bytes = constant != nullptr ? constant->bytes : 0;
  text.append(reinterpret_cast<const char*>(&data), sizeof data);
  text.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

class MemoryStore final : public PackStore, public std::enable_shared_from_this<MemoryStore> {
 public:
  std::unique_ptr<PackWriter> Open() override;

  cache::Key KeyOf(const Fingerprints&, const PackRequest& request) override {
    std::string text(1, static_cast<char>(request.recipe.family()));
    Append(text, request.kernel);
    Append(text, request.bias);
    text += request.recipe.text();
    cache::Key key;
    key.identity.keyed = cache::Hash(std::as_bytes(std::span(text)));
    return key;
  }

  void Packed(const fbx_tensor&) override {}
  PackNote NoteOf(const Fingerprints& fingerprints, const PackRequest& request) override {
    return DescribePack(fingerprints, request);
  }

  std::optional<PackedBlob> Find(const cache::Key& key) {
    const std::lock_guard lock(mutex_);
    const auto at = blobs_.find(key.identity.keyed);
    if (at == blobs_.end()) return std::nullopt;
    return at->second.blob;
  }

  PackedBlob Insert(const cache::Key& key, Memory memory, size_t size) {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = blobs_.try_emplace(key.identity.keyed);
    if (added) {
      at->second.blob = {memory.get(), size};
      at->second.memory = std::move(memory);
    }
    return at->second.blob;
  }

 private:
  struct Entry {
    PackedBlob blob;
    Memory memory;
  };
  std::mutex mutex_;
  std::map<cache::Digest, Entry> blobs_;
};

class MemoryWriter final : public PackWriter {
 public:
  explicit MemoryWriter(std::shared_ptr<MemoryStore> store) : store_(std::move(store)) {}

  std::optional<PackedBlob> Find(const cache::Key& key) override { return store_->Find(key); }
  void* Reserve(size_t size) override {
    reserved_ = Allocate(size);
    return reserved_.get();
  }
  void* ReserveScratch(size_t size) override { return Reserve(size); }
  PackedBlob Insert(const cache::Key& key, void*, size_t size, const PackRequest&, const Fingerprints&,
                    uint32_t) override {
    return store_->Insert(key, std::move(reserved_), size);
  }
  PackedBlob Keep(void*, size_t size) override {
    private_.push_back(std::move(reserved_));
    return {private_.back().get(), size};
  }
  void Discard(void*) override { reserved_.reset(); }
  void Distrust(const cache::Key&) override {}
  void Commit() override {}

 private:
  std::shared_ptr<MemoryStore> store_;
  Memory reserved_;
  std::vector<Memory> private_;
};

std::unique_ptr<PackWriter> MemoryStore::Open() { return std::make_unique<MemoryWriter>(shared_from_this()); }

}  // namespace

std::shared_ptr<PackStore> MakeMemoryStore() { return std::make_shared<MemoryStore>(); }

}  // namespace fusebox::xnnpack
