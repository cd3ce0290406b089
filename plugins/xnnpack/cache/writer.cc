// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/writer.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugins/xnnpack/cache/hooks.h"

namespace fusebox::cache {
namespace {

// False for file systems that cannot reserve space for mapped pages (copy on write, network).
bool CanPromiseSpace(int fd) {
  constexpr uint32_t kZfs = 0x2fc12fc1;
  constexpr uint32_t kBcachefs = 0xca451a4e;
  constexpr uint32_t kCifs = 0xff534d42;
  constexpr uint32_t kFuse = 0x65735546;
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

// Digest of the size and some bytes: different digests imply different contents.
Digest Sample(std::span<const std::byte> bytes) {
  constexpr size_t kParts = 16;
  constexpr size_t kPart = 1024;
  if (bytes.size() <= kParts * kPart) return Hash(bytes, bytes.size());
  Digest sample{bytes.size(), 0};
  const size_t step = (bytes.size() - kPart) / (kParts - 1);
  for (size_t i = 0; i < kParts; ++i) sample = Hash(bytes.subspan(i * step, kPart), sample.low ^ sample.high);
  return sample;
}

Blob BlobOf(const Arena::Region& region, size_t size, uint32_t seed) {
  return {{region.at, size}, seed, region.piece};
}

}  // namespace

void Writer::Start() {
  if (store_->mode_ != Mode::kReadWrite || current_.busy) return Use(Rung::kMemory);
  Note why;
  TempFile& temp = current_.build.temp = MakeTemp(store_->dirs_->tmp.get(), why);
  if (!temp.fd) {
    store_->AddNote(why, true);
    return Use(Rung::kMemory);
  }
  Point("temp");
  current_.publishable = true;
  if (CanPromiseSpace(temp.fd.get())) return Use(Rung::kZeroCopy);
  store_->AddNote(
      {"staged",
       store_->dirs_->path + ": its file system cannot reserve space; weights are packed in memory first", 0},
      false);
  Use(Rung::kStaged);
}

// Earlier regions of the arena keep their memory.
void Writer::Use(Rung rung) {
  rung_ = rung;
  current_.arena.emplace(rung == Rung::kZeroCopy ? current_.build.temp.fd.get() : -1);
}

// Falls back from the file.
void Writer::StepDown(Note why) {
  const bool unsupported = why.code == "not-supported" && current_.build.entries.empty();
  store_->AddNote(std::move(why), !unsupported);
  if (!unsupported)
    current_.publishable = false;  // a partial build would not save the next start from packing
  Use(unsupported ? Rung::kStaged : Rung::kMemory);
}

std::optional<Arena::Region> Writer::ReserveMain(size_t size) {
  if (!current_.arena) Start();
  for (;;) {
    Note why;
    if (auto region = current_.arena->Reserve(size, why)) return region;
    if (rung_ != Rung::kZeroCopy) {
      store_->AddNote(why, true);
      return std::nullopt;
    }
    StepDown(std::move(why));
  }
}

std::optional<Blob> Writer::Find(const Key& key) {
  std::optional<Blob> found = store_->Lookup(key);
  if (found) return found;
  {
    const std::lock_guard lock(mutex_);
    if (current_.claimed) return std::nullopt;
  }
  return Claim(key);
}

std::optional<Blob> Writer::Claim(const Key& first) {
  if (store_->mode_ != Mode::kReadWrite) return std::nullopt;
  auto held = store_->LockBuild(first.identity);
  store_->Refresh();
  if (auto found = store_->Find(first)) return std::move(found->blob);
  const std::lock_guard lock(mutex_);
  current_.claimed = true;
  if (!held) {
    current_.busy = true;
    store_->AddNote(
        {"busy",
         store_->dirs_->path + ": another process packs the same weights for too long; packed in memory", 0},
        true);
  }
  current_.build.lock = std::move(held);
  return std::nullopt;
}

std::byte* Writer::ReserveIn(bool scratch, size_t size) {
  const std::lock_guard lock(mutex_);
  Note why;
  const auto region = scratch ? scratch_.Reserve(size, why) : ReserveMain(size);
  if (!region) return nullptr;
  open_[region->at] = {*region, scratch};
  return region->at;
}

std::byte* Writer::Reserve(size_t size) { return ReserveIn(false, size); }
std::byte* Writer::ReserveScratch(size_t size) { return ReserveIn(true, size); }

Writer::Open Writer::Take(std::byte* reserved, size_t size) {
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

void Writer::Release(const Open& open) { (open.scratch ? scratch_ : *current_.arena).Rewind(open.region); }

// The existing blob under the key. If two contents have one key, each is kept separately.
std::optional<Blob> Writer::Known(const Key& key, const Open& open, size_t size) {
  if (store_->Distrusted(key)) return Private(open, size, 0);
  auto found = store_->Find(key);
  if (!found) return std::nullopt;
  if (Equal(found->blob.bytes, {open.region.at, size})) {
    store_->Count(&Stats::dedup_bytes, size);
    Release(open);
    return std::move(found->blob);
  }
  store_->AddNote(
      {"key-conflict", Hex(key.identity) + ": packed again; the bytes differ from those of this key", 0},
      true);
  store_->Distrust(key);
  return Private(open, size, 0);
}

// The blob of this build with equal bytes under another key.
std::optional<Blob> Writer::Duplicate(const Key& key, const Digest& sample, std::span<const std::byte> bytes,
                                      const About& about) {
  const auto same = current_.by_sample.find(sample);
  if (same == current_.by_sample.end()) return std::nullopt;
  const Build& build = current_.build;
  const Entry& entry = build.entries[same->second];
  if (!Equal(entry.bytes, bytes)) return std::nullopt;
  Blob blob{entry.bytes, about.seed, build.owners[same->second]};
  Add(key, blob, entry.record.offset, about);
  store_->Count(&Stats::dedup_bytes, bytes.size());
  return blob;
}

Blob Writer::Commit(const Key& key, std::byte* reserved, size_t size, const About& about) {
  const Digest sample = dedup_ ? Sample({reserved, size}) : Digest();
  const std::lock_guard lock(mutex_);
  Point("commit");
  Open open = Take(reserved, size);
  if (auto known = Known(key, open, size)) return *known;
  if (auto same = Duplicate(key, sample, {reserved, size}, about)) {
    Release(open);
    return *same;
  }
  if (open.scratch) {
    MoveToMain(open, size);
  } else {
    current_.arena->Trim(open.region, size);
  }
  Blob blob = BlobOf(open.region, size, about.seed);
  store_->Count(&Stats::bytes_packed, size);
  if (!InFile(open)) store_->Count(&Stats::bytes_heap, size);
  if (dedup_) current_.by_sample[sample] = current_.build.entries.size();
  Add(key, blob, open.region.offset, about);
  return blob;
}

// Out of memory: it stays in place.
void Writer::MoveToMain(Open& open, size_t size) {
  auto region = ReserveMain(size);
  if (!region) return;
  std::memcpy(region->at, open.region.at, size);
  Release(open);
  open = {*region, false};
}

// The publishing thread computes the digest of all bytes.
void Writer::Add(const Key& key, const Blob& blob, uint64_t offset, const About& about) {
  Build& build = current_.build;
  build.entries.push_back({{.identity = key.identity,
                            .packed = {},
                            .fingerprint = key.fingerprint,
                            .offset = offset,
                            .size = blob.bytes.size(),
                            .seed = about.seed,
                            .family = about.family,
                            .flags = 0},
                           std::string(about.recipe.substr(0, kMaxNote)),
                           blob.bytes});
  build.owners.push_back(blob.owner);
  store_->AddPending(key, blob);
}

Blob Writer::KeepPrivate(std::byte* reserved, size_t size) {
  const std::lock_guard lock(mutex_);
  return Private(Take(reserved, size), size, 0);
}

Blob Writer::Private(const Open& open, size_t size, uint32_t seed) {
  store_->Count(&Stats::bytes_packed, size);
  store_->Count(&Stats::bytes_heap, size);
  Note why;
  const auto region = InFile(open) ? scratch_.Reserve(size, why) : std::nullopt;
  if (!region) return BlobOf(open.region, size, seed);  // in a file, no entry refers to it
  std::memcpy(region->at, open.region.at, size);
  Release(open);
  return BlobOf(*region, size, seed);
}

void Writer::Discard(std::byte* reserved) {
  const std::lock_guard lock(mutex_);
  Release(Take(reserved, 0));
}

void Writer::Publish() {
  const std::lock_guard lock(mutex_);
  for (auto& [at, open] : open_) open.scratch = true;  // of no build any more
  Current done = std::exchange(current_, {});
  if (done.arena) {
    if (rung_ == Rung::kZeroCopy) done.build.used = done.arena->used();
    done.arena->Seal();
  }
  done.build.staged = rung_ == Rung::kStaged;
  if (done.publishable && !done.build.entries.empty()) store_->Enqueue(std::move(done.build));
}

}  // namespace fusebox::cache
