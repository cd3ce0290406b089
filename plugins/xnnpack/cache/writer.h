// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "plugins/xnnpack/cache/arena.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::cache {

// How a writer's bytes are held, best first. A writer goes down when a rung fails and says why in Store::notes().
enum class Rung {
  kZeroCopy,   // packed straight into pages of the file to be
  kStaged,     // packed into memory, written when published: where the file system cannot promise space
  kAnonymous,  // sealed memory file
  kHeap,       // private memory
};

// What is kept beside the bytes.
struct About {
  uint32_t seed = 0;
  uint16_t family = 0;        // the caller's classes, for listings
  std::string_view recipe{};  // readable, for `cache info` and `cache doctor`; at most 4 KiB are kept
};

// Finds and packs the weights of one user of a store: one build up to each Publish. Without Publish nothing reaches the disk;
// blobs stay valid. Any thread.
class Writer {
 public:
  Writer(std::shared_ptr<Store> store, bool dedup) : store_(std::move(store)), dedup_(dedup) {}

  // Store::Lookup. The first key of a build that is not found is claimed.
  std::optional<Blob> Find(const Key& key);
  // Before the first Reserve, with a key that was not found: waits while another process packs what begins with this key (at most
  // tuning.build_wait_ms, no longer than that process lives). A blob: it has been published meanwhile, and nothing is
  // held. Nothing: pack; others wait from now on, until this build is published or gone. Where the time ran out, the
  // writer packs into memory, and nothing of it is published. A writer that never claims waits for nobody.
  std::optional<Blob> Claim(const Key& first);
  // Memory to pack into, at least `size` bytes, aligned to 128, not cleared. Null: out of memory. Each pointer ends in exactly one of
  // Commit, KeepPrivate and Discard. What is known to be in the store already is packed into Scratch, which never
  // touches a disk.
  std::byte* Reserve(size_t size);
  std::byte* ReserveScratch(size_t size);
  // The first `size` bytes under `key`. When the store has the key, or the same bytes, the memory is given back and
  // the blob is what was there: only blob.bytes may be used from now on. An entry is found by Lookup at once in this process.
  Blob Commit(const Key& key, std::byte* reserved, size_t size, const About& about);
  // Bytes that have no key: they never reach the disk.
  Blob KeepPrivate(std::byte* reserved, size_t size);
  void Discard(std::byte* reserved);
  // The build is complete. It is written in the background (Store::Flush waits); what is packed from now on is another build.
  void Publish();
  Rung rung() const { return rung_; }  // of the build at hand, else of the last one

 private:
  struct Open {
    Arena::Region region;
    bool scratch;
  };
  struct Current {
    Build build;
    bool publishable = false;
    bool claimed = false;
    bool busy = false;  // another process packs the same
    Fd memory;
    std::optional<Arena> arena;  // none before the first Reserve
    std::unordered_map<Digest, size_t, DigestHash> by_sample;  // index of build.entries
  };

  void Start();
  void StartAnonymous();
  void Use(Rung rung, int fd = -1);
  void StepDown(Note why);
  std::optional<Arena::Region> ReserveMain(size_t size);
  std::byte* ReserveIn(bool scratch, size_t size);
  Open Take(std::byte* reserved, size_t size);
  void GiveBack(const Open& open);
  bool InFile(const Open& open) const { return !open.scratch && rung_ == Rung::kZeroCopy; }
  Blob Private(const Open& open, size_t size, uint32_t seed);
  std::optional<Blob> Known(const Key& key, const Open& open, size_t size);
  std::optional<Blob> Duplicate(const Key& key, const Digest& sample, std::span<const std::byte> bytes,
                                const About& about);
  void MoveToMain(Open& open, size_t size);
  void Add(const Key& key, const Blob& blob, uint64_t offset, const About& about);

  const std::shared_ptr<Store> store_;
  const bool dedup_;
  mutable std::mutex mutex_;  // of all below
  std::unordered_map<std::byte*, Open> open_;
  std::atomic<Rung> rung_ = Rung::kHeap;
  Current current_;
  Arena scratch_{Arena::Kind::kPrivate, -1};
};

}  // namespace fusebox::cache
