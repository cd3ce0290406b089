// SPDX-License-Identifier: Apache-2.0
// A PackStore over the WeightStore: keys by content, with the digests of model files remembered.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <utility>
#include <vector>

#include "plugins/xnnpack/pack_store.h"
#include "plugins/xnnpack/tensor_digests.h"

namespace fusebox::xnnpack {

namespace {

class FileStore final : public PackStore, public std::enable_shared_from_this<FileStore> {
 public:
  explicit FileStore(std::shared_ptr<cache::Store> store) : store_(store), digests_(std::move(store)) {}
  std::unique_ptr<PackWriter> Open() override;
  cache::Store& store() { return *store_; }

  cache::Key KeyOf(const Fingerprints& fingerprints, const PackRequest& request) override {
    const Recipe& recipe = request.recipe;
    cache::KeyBuilder builder(FamilyName(recipe.family()));
    builder.Text(fingerprints.cpu()).Text(recipe.text());
    AddContents(builder, request);
    return builder.Build(fingerprints.of(recipe.family(), recipe.form()));
  }

  // The pages of the model's file are given back, so that a build holds its weights once: who reads them again gets
  // them from the page cache.
  void Packed(const fbx_tensor& constant) override {
    if (constant.file == nullptr || constant.file->data == nullptr) return;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto data = reinterpret_cast<uintptr_t>(constant.data);
    const uintptr_t begin = (data + page - 1) / page * page, end = (data + constant.bytes) / page * page;
    if (begin >= end) return;
    const auto* const first = static_cast<const std::byte*>(constant.data) + (begin - data);
    madvise(const_cast<std::byte*>(first), end - begin, MADV_DONTNEED);
  }

  PackNote NoteOf(const Fingerprints& fingerprints, const PackRequest& request) override {
    PackNote note = DescribePack(fingerprints, request);
    cache::KeyBuilder builder(FamilyName(request.recipe.family()));
    builder.Text(request.recipe.text());
    AddContents(builder, request);
    note.source = cache::Hex(builder.Build(0).identity.keyed);
    return note;
  }

  std::string WhyNotKept() override {
    const std::string reason = store_->stats().fallback_reason;
    if (reason.empty() || told_.exchange(true)) return {};
    for (const cache::Note& note : store_->notes())
      if (note.code == reason) return note.message;
    return reason;
  }

  void SaveMemos() { digests_.Save(); }

 private:
  void AddContents(cache::KeyBuilder& builder, const PackRequest& request) {
    builder.Buffer(digests_.Of(*request.kernel), request.kernel->bytes);
    if (request.bias != nullptr) builder.Buffer(digests_.Of(*request.bias), request.bias->bytes);
  }

  std::shared_ptr<cache::Store> store_;
  TensorDigests digests_;
  std::atomic<bool> told_ = false;
};

class FileWriter final : public PackWriter {
 public:
  explicit FileWriter(std::shared_ptr<FileStore> store) : store_(std::move(store)) {}

  std::optional<PackedBlob> Find(const cache::Key& key) override {
    std::optional<cache::Blob> found = store_->store().Lookup(key);
    // The first miss of a build: another process may be at it.
    if (!found && !std::exchange(claimed_, true)) {
      found = writer().Claim(key);
      claimed_ = !found;
    }
    if (!found) return std::nullopt;
    return Hold(std::move(*found));
  }
  void* Reserve(size_t size) override { return writer().Reserve(size); }
  void* ReserveScratch(size_t size) override { return writer().ReserveScratch(size); }
  PackedBlob Insert(const cache::Key& key, void* reserved, size_t size, const PackRequest& request,
                    const Fingerprints& fingerprints, uint32_t seed) override {
    changed_ = true;
    const std::string note = store_->NoteOf(fingerprints, request).Text();
    return Hold(writer().Commit(
        key, static_cast<std::byte*>(reserved), size,
        {.seed = seed, .family = static_cast<uint16_t>(request.recipe.family()), .recipe = note}));
  }
  PackedBlob Keep(void* reserved, size_t size) override {
    return Hold(writer().KeepPrivate(static_cast<std::byte*>(reserved), size));
  }
  void Discard(void* reserved) override { writer().Discard(static_cast<std::byte*>(reserved)); }
  void Distrust(const cache::Key& key) override { store_->store().Distrust(key); }

  // A writer is published once; what comes later is another build.
  void Commit() override {
    if (changed_) {
      writer_->Publish();
      finished_.push_back(std::move(writer_));
    }
    writer_.reset();  // and its turn
    changed_ = claimed_ = false;
    store_->SaveMemos();
  }

 private:
  cache::Writer& writer() {
    if (writer_ == nullptr) writer_ = store_->store().NewWriter();
    return *writer_;
  }
  // Blobs are never written again; XNNPACK's callbacks only lack the const.
  PackedBlob Hold(cache::Blob blob) {
    blobs_.push_back(std::move(blob));
    const auto bytes = blobs_.back().bytes;
    return {const_cast<std::byte*>(bytes.data()), bytes.size()};
  }

  std::shared_ptr<FileStore> store_;
  std::unique_ptr<cache::Writer> writer_;
  std::vector<std::unique_ptr<cache::Writer>> finished_;
  std::vector<cache::Blob> blobs_;
  bool changed_ = false, claimed_ = false;
};

std::unique_ptr<PackWriter> FileStore::Open() { return std::make_unique<FileWriter>(shared_from_this()); }

}  // namespace

std::shared_ptr<cache::Store> OpenWeightStore(const std::string& path, bool share, cache::Mode mode) {
  return cache::Store::Open({.path = path, .mode = mode, .writer = "fusebox.xnnpack 1.0.0", .dedup = share});
}

std::shared_ptr<PackStore> MakeFileStore(std::shared_ptr<cache::Store> store) {
  return std::make_shared<FileStore>(std::move(store));
}

}  // namespace fusebox::xnnpack
