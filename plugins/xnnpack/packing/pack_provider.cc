// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/pack_provider.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "plugins/xnnpack/profile.h"

namespace fusebox::xnnpack {

namespace {

constexpr size_t kEmptyBytes = size_t{1} << 20;
constexpr size_t kEmptyStep = 16;

std::byte* Bytes(void* data) { return static_cast<std::byte*>(data); }

// Drops the pages of the model's file, so that weights are not in memory twice while they are packed. Later
// reads use the page cache.
void ReleasePages(const fbx_tensor& constant) {
  if (constant.file == nullptr || constant.file->data == nullptr) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto data = reinterpret_cast<uintptr_t>(constant.data);
  const uintptr_t begin = (data + page - 1) / page * page;
  const uintptr_t end = (data + constant.bytes) / page * page;
  if (begin >= end) return;
  const auto* const first = static_cast<const std::byte*>(constant.data) + (begin - data);
  madvise(const_cast<std::byte*>(first), end - begin, MADV_DONTNEED);
}

}  // namespace

PackProvider::PackProvider(std::shared_ptr<ModelWeights> weights, std::optional<uint64_t> apart)
    : weights_(std::move(weights)),
      // In memory, deduplication would cost more than it saves: equal constants are rare.
      writer_(weights_->store().NewWriter(!apart && !weights_->in_memory())),
      apart_(apart) {
  callbacks_.context = this;
  callbacks_.look_up = [](void* self, const xnn_weights_cache_look_up_key* key) {
    return Self(self).LookUp(*key);
  };
  callbacks_.reserve_space = [](void* self, size_t size) { return Self(self).Reserve(size); };
  callbacks_.look_up_or_insert = [](void* self, const xnn_weights_cache_look_up_key* key, void* data,
                                    size_t size) { return Self(self).LookUpOrInsert(*key, data, size); };
  // Inserted blobs are complete and never move, so a runtime may run at any time.
  callbacks_.is_finalized = [](void*) { return true; };
  callbacks_.offset_to_addr = [](void* self, size_t offset) -> void* {
    // An invalid offset means corrupt memory; any address would compute garbage.
    if (offset >= Self(self).blobs_.size()) std::abort();
    // XNNPACK only reads it, but its callback is not const.
    return const_cast<std::byte*>(Self(self).blobs_[offset].bytes.data());
  };
  callbacks_.delete_cache = [](void*) { return xnn_status_success; };
}

PackProvider::~PackProvider() {
  if (empty_ != nullptr) munmap(empty_, kEmptyBytes);
}

const void* PackProvider::EmptyAddress() {
  if (empty_ == nullptr) {
    void* space = mmap(nullptr, kEmptyBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) return nullptr;
    empty_ = static_cast<char*>(space);
  }
  if (empty_used_ == kEmptyBytes) return nullptr;
  return empty_ + std::exchange(empty_used_, empty_used_ + kEmptyStep);
}

const void* PackProvider::AddressFor(const Source& source) {
  if (source.unpack) return Hold(source.unpack());
  const void* data = source.kernel->data;
  if (!registered_.contains(data)) return data;
  // Same weights, second recipe: a copy, so that one address has one recipe.
  std::vector<uint8_t> copy(source.kernel->bytes + XNN_EXTRA_BYTES);
  std::memcpy(copy.data(), data, source.kernel->bytes);
  return Hold(std::move(copy));
}

const void* PackProvider::Register(Recipe recipe, const Source& source) {
  LookUpSpan span(traced_);
  if (apart_) recipe.Add(*apart_, registrations_++);
  const cache::Key key = KeyOf(*weights_, {recipe, source.kernel, source.bias});
  if (const auto at = addresses_.find(key); at != addresses_.end()) return at->second;
  Registered entry{.key = key,
                   .recipe = recipe,
                   .kernel = source.kernel,
                   .bias = source.bias,
                   .always_packed = source.always_packed};
  if (const auto at = known_.find(key); at != known_.end()) {
    entry.index = at->second;
    statistics_.bytes_shared += SizeOf(entry.index);
  } else if (auto found = writer_->Find(key)) {
    statistics_.bytes_found += found->bytes.size();
    entry.index = Number(std::move(*found));
    known_.emplace(key, entry.index);
  }
  const bool is_found = entry.index != SIZE_MAX;
  span.End(is_found, is_found ? SizeOf(entry.index) : source.kernel->bytes);
  const void* address = nullptr;
  if (entry.index != SIZE_MAX && !source.always_packed) address = EmptyAddress();
  if (address == nullptr) address = AddressFor(source);
  if (entry.index != SIZE_MAX && source.always_packed) again_.push_back(SizeOf(entry.index));
  registered_.emplace(address, std::move(entry));
  addresses_.emplace(key, address);
  return address;
}

const void* PackProvider::Hold(std::vector<uint8_t> bytes) {
  held_.push_back(std::move(bytes));
  return held_.back().data();
}

void PackProvider::ForgetSources() {
  registered_.clear();
  addresses_.clear();
  held_.clear();
  again_.clear();
  empty_used_ = 0;
  poisoned_.clear();
}

uint64_t PackProvider::bytes_to_pack() const {
  uint64_t bytes = 0;
  for (const auto& [address, entry] : registered_)
    if (entry.index == SIZE_MAX || entry.always_packed) bytes += entry.kernel->bytes;
  return bytes;
}

size_t PackProvider::Number(cache::Blob blob) {
  blobs_.push_back(std::move(blob));
  return blobs_.size() - 1;
}

void PackProvider::Publish() {
  writer_->Publish();
  weights_->Save();
}

void PackProvider::Poison(std::string why) {
  if (poisoned_.empty()) poisoned_ = std::move(why);
}

size_t PackProvider::LookUp(const xnn_weights_cache_look_up_key& key) {
  const auto at = registered_.find(key.kernel);
  return at == registered_.end() ? SIZE_MAX : at->second.index;
}

// XNNPACK does not pass the op; the size identifies it. If it is the wrong one, Commit copies the bytes.
void* PackProvider::Reserve(size_t size) {
  const auto at = std::find(again_.begin(), again_.end(), size);
  if (at == again_.end()) return writer_->Reserve(size);
  again_.erase(at);
  return writer_->ReserveScratch(size);
}

size_t PackProvider::Insert(Registered& entry, uint32_t seed, void* data, size_t size) {
  const bool lasting = !weights_->in_memory();
  const std::string note = lasting ? NoteOf(*weights_, entry.request()).Text() : std::string();
  const size_t index = Number(writer_->Commit(
      entry.key, Bytes(data), size,
      {.seed = seed, .family = static_cast<uint16_t>(entry.recipe.family()), .recipe = note}));
  known_.emplace(entry.key, index);
  statistics_.bytes_packed += size;
  if (lasting) ReleasePages(*entry.kernel);
  return index;
}

// Must return a blob in any case: XNNPACK uses SIZE_MAX as an offset.
size_t PackProvider::LookUpOrInsert(const xnn_weights_cache_look_up_key& key, void* data, size_t size) {
  const auto at = registered_.find(key.kernel);
  if (at == registered_.end()) {
    statistics_.bytes_private += size;
    return Number(writer_->KeepPrivate(Bytes(data), size));
  }
  Registered& entry = at->second;
  if (packed_ && (entry.index == SIZE_MAX || data != nullptr)) packed_(entry.kernel->bytes);
  if (entry.index == SIZE_MAX) {
    entry.index = Insert(entry, key.seed, data, size);
  } else if (data != nullptr) {
    writer_->Discard(Bytes(data));
    statistics_.bytes_again += size;
  }
  if (SizeOf(entry.index) != size) {
    weights_->store().Distrust(entry.key);
    known_.erase(entry.key);
    Poison("packed weights of " + std::to_string(SizeOf(entry.index)) + " bytes, but XNNPACK requires " +
           std::to_string(size));
  }
  return entry.index;
}

}  // namespace fusebox::xnnpack
