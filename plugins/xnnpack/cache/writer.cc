// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugins/xnnpack/cache/arena.h"
#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store_impl.h"

namespace fusebox::cache {
namespace {

// File systems where pages of a mapped file cannot be promised a place: written in copies, or far away.
bool CanPromiseSpace(int fd) {
  constexpr uint32_t kZfs = 0x2fc12fc1, kBcachefs = 0xca451a4e, kCifs = 0xff534d42, kFuse = 0x65735546;
  struct statfs fs;
  if (Fails("statfs") || fstatfs(fd, &fs) != 0) return false;
  const auto type = static_cast<uint32_t>(fs.f_type);
  for (const uint32_t staged :
       {uint32_t{BTRFS_SUPER_MAGIC}, uint32_t{NFS_SUPER_MAGIC}, uint32_t{SMB_SUPER_MAGIC},
        uint32_t{SMB2_SUPER_MAGIC}, uint32_t{V9FS_MAGIC}, kZfs, kBcachefs, kCifs, kFuse})
    if (type == staged) return false;
  return true;
}

bool Equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Of the size and some of the bytes: what differs here is different.
Digest Sample(std::span<const std::byte> bytes) {
  constexpr size_t kParts = 16, kPart = 1024;
  if (bytes.size() <= kParts * kPart) return Hash(bytes, bytes.size());
  Digest sample{bytes.size(), 0};
  const size_t step = (bytes.size() - kPart) / (kParts - 1);
  for (size_t i = 0; i < kParts; ++i) sample = Hash(bytes.subspan(i * step, kPart), sample.low ^ sample.high);
  return sample;
}

class WriterImpl final : public Writer {
 public:
  explicit WriterImpl(std::shared_ptr<StoreImpl> store)
      : store_(std::move(store)), scratch_(Arena::Kind::kPrivate, -1, 0, 0) {}
  ~WriterImpl() override {
    if (store_->home()) DropTemp(build_.temp, TempDirectory());
  }

  std::optional<Blob> Claim(const Key& first) override;
  std::byte* Reserve(size_t size) override;
  std::byte* ReserveScratch(size_t size) override;
  Blob Commit(const Key& key, std::byte* reserved, size_t size, const About& about) override;
  Blob KeepPrivate(std::byte* reserved, size_t size) override;
  void Discard(std::byte* reserved) override;
  void Publish() override;
  Rung rung() const override { return rung_; }

 private:
  struct Open {
    Arena::Region region;
    bool scratch;
  };

  int TempDirectory() const { return store_->home()->tmp.get(); }
  void Start();
  void StartAnonymous();
  void StepDown(Note why);
  std::optional<Arena::Region> ReserveMain(size_t size);
  Open Take(std::byte* reserved, size_t size);
  void GiveBack(const Open& open) { (open.scratch ? scratch_ : *arena_).Rewind(open.region); }
  bool InFile(const Open& open) const { return !open.scratch && rung_ == Rung::kZeroCopy; }
  Blob Keep(const Open& open, size_t size, uint32_t seed);
  Blob Private(const Open& open, size_t size, uint32_t seed);
  std::optional<Blob> Known(const Key& key, const Open& open, size_t size);
  std::optional<Blob> Twin(const Key& key, const Digest& sample, const Open& open, size_t size,
                           const About& about);
  std::optional<Open> MoveToMain(const Open& open, size_t size);
  void Add(const Key& key, const Digest& sample, const Open& open, const Blob& blob, const About& about);

  const std::shared_ptr<StoreImpl> store_;
  mutable std::mutex mutex_;  // of all below
  std::unordered_map<std::byte*, Open> open_;
  std::atomic<Rung> rung_ = Rung::kHeap;
  bool started_ = false, publishable_ = false, published_ = false;
  bool busy_ = false;  // another process packs the same
  Fd memory_;
  std::optional<Arena> arena_;
  std::vector<std::unique_ptr<Arena>> left_;  // rungs that failed: what they hold is used on
  Arena scratch_;
  Build build_;
  std::unordered_map<Digest, size_t, DigestHash> by_sample_;  // index of build_.entries
};

void WriterImpl::Start() {
  started_ = true;
  if (store_->mode() == Mode::kOff) {
    arena_.emplace(Arena::Kind::kPrivate, -1, 0, 0);
    return;
  }
  if (store_->mode() != Mode::kReadWrite || busy_) return StartAnonymous();
  Note why;
  build_.temp = MakeTemp(TempDirectory(), why);
  if (!build_.temp.fd) {
    store_->AddNote(why, true);
    return StartAnonymous();
  }
  Point("temp");
  publishable_ = true;
  if (CanPromiseSpace(build_.temp.fd.get())) {
    rung_ = Rung::kZeroCopy;
    arena_.emplace(Arena::Kind::kFile, build_.temp.fd.get(), kFirstBlob, store_->options().min_free_bytes);
  } else {
    store_->AddNote(
        {"staged", store_->where() + ": its file system cannot promise space, packed in memory first", 0},
        false);
    rung_ = Rung::kStaged;
    arena_.emplace(Arena::Kind::kPrivate, -1, 0, 0);
  }
}

void WriterImpl::StartAnonymous() {
  memory_ = Fd(Fails("memfd") ? -1 : memfd_create("fusebox-weights", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory_) {
    rung_ = Rung::kAnonymous;
    arena_.emplace(Arena::Kind::kMemoryFile, memory_.get(), 0, 0);
  } else {
    store_->AddNote(ErrnoNote(errno, "a memory file cannot be made", "no-memory-file"), false);
    rung_ = Rung::kHeap;
    arena_.emplace(Arena::Kind::kPrivate, -1, 0, 0);
  }
}

void WriterImpl::StepDown(Note why) {
  const bool unsupported = rung_ == Rung::kZeroCopy && why.code == "not-supported" && build_.entries.empty();
  store_->AddNote(std::move(why), !unsupported);
  // Regions that are open still belong to it.
  left_.push_back(std::make_unique<Arena>(std::move(*arena_)));
  if (unsupported) {
    rung_ = Rung::kStaged;
    arena_.emplace(Arena::Kind::kPrivate, -1, 0, 0);
  } else if (rung_ == Rung::kZeroCopy) {
    publishable_ = false;  // a part would fill the disk and not save the next start from packing
    StartAnonymous();
  } else {
    publishable_ = false;
    rung_ = Rung::kHeap;
    arena_.emplace(Arena::Kind::kPrivate, -1, 0, 0);
  }
}

std::optional<Arena::Region> WriterImpl::ReserveMain(size_t size) {
  if (!started_) Start();
  for (;;) {
    Note why;
    if (auto region = arena_->Reserve(size, why)) return region;
    if (arena_->kind() == Arena::Kind::kPrivate) {
      store_->AddNote(why, true);
      return std::nullopt;
    }
    StepDown(std::move(why));
  }
}

std::optional<Blob> WriterImpl::Claim(const Key& first) {
  if (store_->mode() != Mode::kReadWrite) return std::nullopt;
  auto turn = store_->TakeTurn(first.identity.keyed);
  store_->Refresh();
  if (auto found = store_->Find(first)) return std::move(found->blob);
  const std::lock_guard lock(mutex_);
  if (!turn) {
    busy_ = true;
    store_->AddNote(
        {"busy", store_->where() + ": another process is packing the same for too long, packed in memory", 0},
        true);
  }
  build_.turn = std::move(turn);
  return std::nullopt;
}

std::byte* WriterImpl::Reserve(size_t size) {
  std::unique_lock lock(mutex_);
  if (published_) {
    lock.unlock();
    return ReserveScratch(size);
  }
  const auto region = ReserveMain(size);
  if (!region) return nullptr;
  open_[region->at] = {*region, false};
  return region->at;
}

std::byte* WriterImpl::ReserveScratch(size_t size) {
  const std::lock_guard lock(mutex_);
  Note why;
  const auto region = scratch_.Reserve(size, why);
  if (!region) return nullptr;
  open_[region->at] = {*region, true};
  return region->at;
}

WriterImpl::Open WriterImpl::Take(std::byte* reserved, size_t size) {
  const auto at = open_.find(reserved);
  if (at == open_.end() || size > at->second.region.capacity) {
    std::fprintf(stderr, "fusebox: weight store: %zu bytes at %p were not reserved\n", size,
                 static_cast<void*>(reserved));
    std::abort();
  }
  Open open = at->second;
  open_.erase(at);
  return open;
}

Blob WriterImpl::Keep(const Open& open, size_t size, uint32_t seed) {
  return {{open.region.at, size}, seed, open.region.piece};
}

// What is there under the key already. A key that two contents share does not say enough: then each keeps its own.
std::optional<Blob> WriterImpl::Known(const Key& key, const Open& open, size_t size) {
  if (store_->Distrusted(key)) return Private(open, size, 0);
  auto found = store_->Find(key);
  if (!found) return std::nullopt;
  if (Equal(found->blob.bytes, {open.region.at, size})) {
    store_->dedup_bytes += size;
    GiveBack(open);
    return std::move(found->blob);
  }
  store_->AddNote(
      {"key-conflict", Hex(key.identity.keyed) + ": packed anew, the bytes differ from those of this key", 0},
      true);
  store_->Distrust(key);
  return Private(open, size, 0);
}

// The same bytes that this build has under another key.
std::optional<Blob> WriterImpl::Twin(const Key& key, const Digest& sample, const Open& open, size_t size,
                                     const About& about) {
  const auto same = by_sample_.find(sample);
  if (same == by_sample_.end() || !store_->options().dedup) return std::nullopt;
  const Entry& entry = build_.entries[same->second];
  if (!Equal(entry.bytes, {open.region.at, size})) return std::nullopt;
  Entry copy = entry;
  Blob blob{entry.bytes, about.seed, build_.owners[same->second]};
  copy.record.identity = key.identity.keyed;
  copy.record.fingerprint = key.fingerprint;
  copy.record.seed = about.seed;
  copy.record.family = about.family;
  copy.note = about.recipe.substr(0, kMaxNote);
  build_.entries.push_back(std::move(copy));
  build_.owners.push_back(blob.owner);
  store_->AddPending(key, blob);
  store_->dedup_bytes += size;
  GiveBack(open);
  return blob;
}

Blob WriterImpl::Commit(const Key& key, std::byte* reserved, size_t size, const About& about) {
  const Digest sample = Sample({reserved, size});
  const std::lock_guard lock(mutex_);
  Point("commit");
  Open open = Take(reserved, size);
  if (auto known = Known(key, open, size)) return *known;
  if (!open.scratch) arena_->Trim(open.region, size);
  if (published_) return Keep(open, size, about.seed);
  if (auto twin = Twin(key, sample, open, size, about)) return *twin;
  if (open.scratch)
    if (auto moved = MoveToMain(open, size)) open = *moved;
  Blob blob = Keep(open, size, about.seed);
  store_->bytes_packed += size;
  if (!InFile(open)) store_->bytes_heap += size;
  Add(key, sample, open, blob, about);
  return blob;
}

std::optional<WriterImpl::Open> WriterImpl::MoveToMain(const Open& open, size_t size) {
  auto region = ReserveMain(size);
  if (!region) return std::nullopt;
  std::memcpy(region->at, open.region.at, size);
  GiveBack(open);
  return Open{*region, false};
}

// The digest of all bytes is left to the publishing thread.
void WriterImpl::Add(const Key& key, const Digest& sample, const Open& open, const Blob& blob,
                     const About& about) {
  Entry entry{{key.identity.keyed,
               {},
               key.fingerprint,
               open.region.offset,
               blob.bytes.size(),
               about.seed,
               about.family,
               0},
              std::string(about.recipe.substr(0, kMaxNote)),
              blob.bytes};
  by_sample_[sample] = build_.entries.size();
  build_.entries.push_back(std::move(entry));
  build_.owners.push_back(blob.owner);
  store_->AddPending(key, blob);
}

Blob WriterImpl::KeepPrivate(std::byte* reserved, size_t size) {
  const std::lock_guard lock(mutex_);
  return Private(Take(reserved, size), size, 0);
}

Blob WriterImpl::Private(const Open& open, size_t size, uint32_t seed) {
  store_->bytes_packed += size;
  store_->bytes_heap += size;
  if (!InFile(open)) return Keep(open, size, seed);
  Note why;
  const auto region = scratch_.Reserve(size, why);
  if (!region) return Keep(open, size, seed);  // lies in the file, where no entry names it
  std::memcpy(region->at, open.region.at, size);
  GiveBack(open);
  return Keep({*region, true}, size, seed);
}

void WriterImpl::Discard(std::byte* reserved) {
  const std::lock_guard lock(mutex_);
  GiveBack(Take(reserved, 0));
}

void WriterImpl::Publish() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(published_, true)) return;
  if (arena_) {
    build_.used = std::max(kFirstBlob, rung_ == Rung::kZeroCopy ? arena_->used() : 0);
    if (rung_ == Rung::kZeroCopy || rung_ == Rung::kAnonymous) arena_->Seal();
  }
  build_.staged = rung_ == Rung::kStaged;
  if (!publishable_ || build_.entries.empty()) {
    if (store_->home()) DropTemp(build_.temp, TempDirectory());
    build_.turn.reset();
    return;
  }
  by_sample_.clear();
  store_->Enqueue(std::exchange(build_, Build{}));
}

}  // namespace

std::unique_ptr<Writer> StoreImpl::NewWriter() {
  return std::make_unique<WriterImpl>(std::static_pointer_cast<StoreImpl>(shared_from_this()));
}

}  // namespace fusebox::cache
