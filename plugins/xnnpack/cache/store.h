// SPDX-License-Identifier: Apache-2.0
// Packed weights, in files that models and processes share or in memory. docs/weight-cache.md describes the
// file format and which failures are handled. Nothing here depends on the code that packs.
//
//   auto store = Store::Open({.path = "auto"});              // never fails: at worst nothing is kept, see notes()
//   Digest weights = store->Memo(model)->Of(offset, bytes);  // reads the bytes only if the model is new
//   Key key = KeyBuilder("fc f32").Number(ic).Buffer(weights, bytes.size()).Build(fingerprint);
//   auto writer = store->NewWriter();
//   if (auto hit = writer->Find(key)) return use(hit->bytes);
//   std::byte* to = writer->Reserve(n);
//   pack(to);
//   Blob blob = writer->Commit(key, to, n, {.seed = s});
//   writer->Publish();                                       // in the background; blobs can be used at once
//
// Threads: every function of Store, Writer and ModelMemo may be called from any thread. Ownership: a Blob
// keeps its bytes mapped; a Writer keeps its Store; a Store must outlive its ModelMemos. Errors: notes(); the
// only exception is std::bad_alloc.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "plugins/xnnpack/cache/digest.h"
#include "plugins/xnnpack/cache/segment_write.h"
#include "plugins/xnnpack/cache/store_dirs.h"

namespace fusebox::cache {

class ModelMemo;
class Writer;

enum class Mode {
  kPrivate,    // no path: in private memory, shared by the writers of this Store until it is destroyed
  kAnonymous,  // shared within this process, nothing on disk
  kReadOnly,   // uses existing files; new weights are kept as in kAnonymous
  kReadWrite,
};

struct Options {
  // "": kPrivate. "auto": $XDG_CACHE_HOME/fusebox or ~/.cache/fusebox. ":memory": kAnonymous. Otherwise a
  // file or a directory. If the path does not exist, it is a directory if it ends in "/" or its last part has
  // no dot.
  std::string path;
  Mode mode = Mode::kReadWrite;  // or kReadOnly
  std::string writer;            // name of the packing program for listings, at most 63 bytes
};

// Packed bytes. Readable, never written again, aligned to 128.
struct Blob {
  std::span<const std::byte> bytes;
  uint32_t seed = 0;
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
};

struct Stats {
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t bytes_mapped = 0;  // found in files
  uint64_t bytes_packed = 0;  // committed by writers of this process, without duplicates
  uint64_t bytes_heap = 0;    // of these, in private memory
  uint64_t dedup_bytes = 0;   // committed, but equal to what was there
  uint64_t bytes_hashed = 0;  // of models, not found in a memo
  uint64_t segments_published = 0;
  uint64_t segments_bad = 0;
  // Code and message of the first note about a fallback that costs memory or time; "" if there is none.
  std::string fallback_reason, fallback_message;
};

class Store : public std::enable_shared_from_this<Store> {
 public:
  // The store of this path: one object per process for equal paths and modes, except in kPrivate. Includes
  // what other processes have published so far.
  static std::shared_ptr<Store> Open(const Options& options);
  explicit Store(const Options& options);  // for Open
  ~Store();                                // waits for builds that are being published

  // The weights packed under `key`.
  std::optional<Blob> Lookup(const Key& key);
  // The entry is not found again in this process: its bytes have the wrong size for their user.
  void Distrust(const Key& key);
  // Digest of a source buffer, seeded with the secret of this store.
  Digest HashContent(std::span<const std::byte> bytes);
  // The digests of a model file's buffers, with those that earlier starts saved.
  std::shared_ptr<ModelMemo> Memo(const ModelFile& file);
  // `dedup`: equal bytes under two keys of one build are stored once.
  std::unique_ptr<Writer> NewWriter(bool dedup = true);
  // Waits until all published builds are on disk or have failed (see notes).
  void Flush();

  Mode mode() const { return mode_; }  // after fallback
  Stats stats() const;
  std::vector<Note> notes() const;

 private:
  friend class ModelMemo;
  friend class Writer;
  using Segments = std::vector<std::shared_ptr<Segment>>;
  struct Found {
    Blob blob;
    bool mapped;  // from a file
  };
  // Committed by a writer of this process.
  struct Pending {
    uint64_t fingerprint;
    std::weak_ptr<const void> owner;
    Blob blob;  // with its owner in a private store only
  };

  void OpenDirs();
  std::shared_ptr<Segment> OpenSegment(const std::string& name);
  // Opens segments that other processes have published, and drops those that they have removed.
  void Refresh();
  std::optional<Found> Find(const Key& key);
  std::optional<Blob> FindPending(const Key& key) const;
  void AddPending(const Key& key, const Blob& blob);
  bool Distrusted(const Key& key) const;
  bool Trusted(Segment& segment);
  void MarkBad(Segment& segment, const Note& why);
  void AddNote(Note note, bool costs);
  void Count(uint64_t Stats::* what, uint64_t more = 1);

  // build_lock.cc: the lock for builds whose first key is `first`. Waits for at most tuning.build_wait_ms;
  // null if another process still holds it. Released with the last pointer.
  std::shared_ptr<const void> LockBuild(const Digest& first);

  // publish.cc; all but Enqueue on the worker's thread.
  void Enqueue(Build build);
  void Work();
  void Publish(Build& build);
  bool InOthers(const Build& build) const;
  bool TryPublish(Build& build, Note& why);
  bool AppendOwn(Build& build, Stamp& stamp, Note& why);
  void Settle(const std::string& name, const Digest& id);

  const Options options_;
  Mode mode_;
  std::unique_ptr<StoreDirs> dirs_;  // null: nothing is on disk

  mutable std::shared_mutex mutex_;  // of all down to memos_mutex_
  Segments segments_;                // newest first
  std::unordered_map<Digest, std::vector<Pending>, DigestHash> pending_;
  size_t pending_swept_at_ = 64;
  std::set<Key> distrusted_;
  bool opening_ = true;  // no digest was returned yet

  std::mutex memos_mutex_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<ModelMemo>> memos_;  // by device and inode

  std::mutex locks_mutex_;
  std::map<uint64_t, std::weak_ptr<const void>> locks_;  // of builds, by offset in the lock file

  mutable std::mutex stats_mutex_;
  Stats stats_;
  std::vector<Note> notes_;

  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::deque<Build> work_;
  bool working_ = false;
  bool stopping_ = false;
  std::thread worker_;
  const int pid_;
};

}  // namespace fusebox::cache
