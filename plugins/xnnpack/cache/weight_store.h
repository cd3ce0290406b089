// SPDX-License-Identifier: Apache-2.0
// The WeightStore: packed weights by content, in memory-mapped files that processes share. docs/weight-cache.md has the
// file format and what is safe against what. Nothing here knows who packs.
//
//   auto store = Store::Open({.path = "auto"});            // never fails: at worst it keeps nothing (see notes())
//   Content weights = store->Memo(model)->Of(offset, bytes);       // reads the bytes only when the model is new
//   Key key = KeyBuilder("fc f32").Number(ic).Number(oc).Buffer(weights, bytes.size()).Build(fingerprint);
//   if (auto hit = store->Lookup(key)) use(hit->bytes);
//   auto writer = store->NewWriter();
//   std::byte* to = writer->Reserve(n);  pack(to);  Blob blob = writer->Commit(key, to, n, {.seed = s});
//   writer->Publish();                                     // in the background; the blobs are usable all along
//
// Threads: every function of Store, Writer and Memo may be called from any thread. Destruction may happen in any order:
// a Blob keeps its bytes mapped, a Writer its Store. Nothing throws but std::bad_alloc.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"
#include "plugins/xnnpack/cache/model_memo.h"

namespace fusebox::cache {

enum class Mode {
  kOff,        // finds nothing, keeps nothing; writers give private memory
  kAnonymous,  // shared between the sessions of this process, nothing on disk
  kReadOnly,   // finds what is there; new packs as kAnonymous
  kReadWrite,
};

enum class Verify {
  kOnce,  // every blob of a file is digested the first time that something in it is used, once per boot and state of the file
  kAlways,  // once per process
  kNever,   // superblock and index only
};

// How a writer's bytes are held, best first. A writer goes down when a rung fails and says why in notes().
enum class Rung {
  kZeroCopy,   // packed straight into pages of the file to be
  kStaged,     // packed into memory, written when published: where the file system cannot promise space
  kAnonymous,  // sealed memory file
  kHeap,       // private memory
};

struct Options {
  // "": kOff. "auto": $XDG_CACHE_HOME/fusebox or ~/.cache/fusebox. ":memory": kAnonymous. Else a file or a directory:
  // what is there decides; of what is not there, a path that ends in "/" or whose last part has no dot is a directory.
  std::string path;
  Mode mode = Mode::kReadWrite;
  std::vector<std::string>
      system;              // stores that are only read, asked before `path`; root's or the user's own
  bool shippable = false;  // keyed without a secret, to become somebody's system store
  Verify verify = Verify::kOnce;
  bool trust_memo = true;  // false: model buffers are digested at every start
  bool durable = true;     // false: no fsync; a power cut may cost the file, never its correctness
  uint64_t max_bytes =
      8ull << 30;  // on disk; least recently used files go first, never what this process uses
  uint64_t min_free_bytes = 64ull << 20;  // that a build leaves on the disk
  std::string writer;                     // who packs, for listings: at most 63 bytes are kept
  bool dedup = true;                      // false: equal bytes under two keys are kept twice
  int build_wait_ms = 10'000;             // for another process that packs the same: then packs for itself
};

// Packed bytes. Readable, never written again, aligned to 128.
struct Blob {
  std::span<const std::byte> bytes;
  uint32_t seed = 0;
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
};

// What is kept beside the bytes.
struct About {
  uint32_t seed = 0;
  uint16_t family = 0;        // the caller's classes, for listings
  std::string_view recipe{};  // readable, for `cache info` and `cache doctor`; at most 4 KiB are kept
};

// Something that did not go the best way, and what was done about it.
struct Note {
  std::string code;     // stable: "no-home", "symlink", "foreign-owner", "no-space", "corrupt", ...
  std::string message;  // one sentence with the path
  int error = 0;        // errno, or 0
};

struct Stats {
  uint64_t hits = 0, misses = 0;
  uint64_t bytes_mapped = 0;  // found, in files
  uint64_t bytes_packed = 0;  // committed by writers of this process, without duplicates
  uint64_t bytes_heap = 0;    // of these, in private memory or a memory file
  uint64_t dedup_bytes = 0;   // committed, but equal to what was there
  uint64_t bytes_hashed = 0;  // of models, since no memo had them
  uint64_t segments_published = 0, segments_bad = 0;
  std::string fallback_reason;  // code of the first note that cost something; "" when there is none
  int fallback_error = 0;
};

class Writer {
 public:
  virtual ~Writer() = default;  // without Publish: nothing reaches the disk; blobs stay valid

  // Before the first Reserve, with a key that was not found: waits while another process packs what begins with this key (at most
  // Options::build_wait_ms, no longer than that process lives). A blob: it has been published meanwhile, and nothing is
  // held. Nothing: pack; others wait from now on, until this writer is published or gone. Where the time ran out, the
  // writer packs into memory, and nothing of it is published. A writer that never claims waits for nobody.
  virtual std::optional<Blob> Claim(const Key& first) = 0;
  // Memory to pack into, at least `size` bytes, aligned to 128, not cleared. Null: out of memory. Each pointer ends in exactly one of
  // Commit, KeepPrivate and Discard. What is known to be in the store already is packed into Scratch, which never
  // touches a disk.
  virtual std::byte* Reserve(size_t size) = 0;
  virtual std::byte* ReserveScratch(size_t size) = 0;
  // The first `size` bytes under `key`. When the store has the key, or the same bytes, the memory is given back and
  // the blob is what was there: only blob.bytes may be used from now on. An entry is found by Lookup at once in this process.
  virtual Blob Commit(const Key& key, std::byte* reserved, size_t size, const About& about) = 0;
  // Bytes that have no key: they never reach the disk.
  virtual Blob KeepPrivate(std::byte* reserved, size_t size) = 0;
  virtual void Discard(std::byte* reserved) = 0;
  // The build is complete. Called once, after the last Commit; writing happens in the background (Store::Flush waits).
  virtual void Publish() = 0;
  virtual Rung rung() const = 0;
};

class Store : public std::enable_shared_from_this<Store> {
 public:
  // The store of this path; one object per process for equal paths and modes. Sees what others published so far.
  static std::shared_ptr<Store> Open(const Options& options);
  virtual ~Store() = default;  // waits for what is being published

  // What was packed under `key`. A miss says nothing of why.
  virtual std::optional<Blob> Lookup(const Key& key) = 0;
  // Never find this entry again in this process: its bytes do not fit what asked for them.
  virtual void Distrust(const Key& key) = 0;
  virtual Content HashContent(std::span<const std::byte> bytes) = 0;
  // The digests of a model file's buffers, as remembered from earlier starts.
  virtual std::shared_ptr<ModelMemo> Memo(const ModelFile& file) = 0;
  virtual std::unique_ptr<Writer> NewWriter() = 0;
  // Waits until all that was published is on disk, or has failed (notes).
  virtual void Flush() = 0;

  virtual Mode mode() const = 0;                 // after fallback
  virtual const std::string& where() const = 0;  // absolute path; "" for none
  virtual Stats stats() const = 0;
  virtual std::vector<Note> notes() const = 0;
};

}  // namespace fusebox::cache
