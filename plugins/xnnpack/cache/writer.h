// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <optional>
#include <unordered_map>

#include "plugins/xnnpack/cache/arena.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::cache {

// Where a writer's bytes are, best first. If one fails, the writer falls back to the next; Store::notes() has
// the cause.
enum class Rung {
  kZeroCopy,  // packed into pages of the future file
  kStaged,    // packed into memory, written when published: for file systems that cannot reserve space
  kMemory,
};

// Stored with the bytes.
struct About {
  uint32_t seed = 0;
  uint16_t family = 0;        // defined by the caller, for listings
  std::string_view recipe{};  // text for `cache info` and `cache doctor`, at most 4 KiB
};

// Finds and packs weights for one user of a store. Weights committed before a Publish are one build, which
// becomes one segment. Without Publish nothing is written to disk; blobs stay valid. Any thread.
class Writer {
 public:
  Writer(std::shared_ptr<Store> store, bool dedup) : store_(std::move(store)), dedup_(dedup) {}

  // Store::Lookup; then Claim for the first key of a build that is not found.
  std::optional<Blob> Find(const Key& key);
  // Before the first Reserve, with a key that was not found. Waits while another process packs a build with
  // this first key: at most tuning.build_wait_ms, and not longer than that process lives. Returns a blob if
  // that process has published it. Otherwise the caller packs, and other processes wait until this build is
  // published or dropped. After a timeout the writer packs into memory and publishes nothing. A writer that
  // never claims never waits.
  std::optional<Blob> Claim(const Key& first);
  // Returns memory to pack into: at least `size` bytes, aligned to 128, not cleared. Returns null if out of
  // memory. Each pointer is passed to exactly one of Commit, KeepPrivate and Discard. Scratch is never part
  // of a file; it is for weights that the store already has.
  std::byte* Reserve(size_t size);
  std::byte* ReserveScratch(size_t size);
  // Stores the first `size` bytes under `key`. If the store already has the key, or the same bytes, the
  // memory is freed and the existing blob is returned: use only blob.bytes afterwards. Lookup finds the entry
  // at once in this process.
  Blob Commit(const Key& key, std::byte* reserved, size_t size, const About& about);
  // Keeps bytes without a key, never on disk.
  Blob KeepPrivate(std::byte* reserved, size_t size);
  void Discard(std::byte* reserved);
  // Ends the build and writes it in the background (Store::Flush waits). The next Reserve or Claim starts
  // another one.
  void Publish();
  Rung rung() const { return rung_; }  // of the current build, or of the last one

 private:
  struct Open {
    Arena::Region region;
    bool scratch;
  };
  // The build from the first Reserve or Claim to Publish.
  struct Current {
    Build build;
    bool publishable = false;
    bool claimed = false;
    bool busy = false;                                         // another process packs the same
    std::optional<Arena> arena;                                // none before the first Reserve
    std::unordered_map<Digest, size_t, DigestHash> by_sample;  // index of build.entries
  };

  void Start();
  void Use(Rung rung);
  void StepDown(Note why);
  std::optional<Arena::Region> ReserveMain(size_t size);
  std::byte* ReserveIn(bool scratch, size_t size);
  Open Take(std::byte* reserved, size_t size);
  void Release(const Open& open);
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
  std::atomic<Rung> rung_ = Rung::kMemory;
  Current current_;
  Arena scratch_{-1};
};

}  // namespace fusebox::cache
