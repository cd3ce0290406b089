// SPDX-License-Identifier: Apache-2.0
// The inside of a Store: lookup.cc finds, writer.cc packs, publish.cc writes, gc.cc tidies up.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>

#include "plugins/xnnpack/cache/home.h"
#include "plugins/xnnpack/cache/segment_write.h"
#include "plugins/xnnpack/cache/weight_store.h"

namespace fusebox::cache {

struct MemoTable;

class StoreImpl final : public Store {
 public:
  explicit StoreImpl(const Options& options);
  ~StoreImpl() override;

  std::optional<Blob> Lookup(const Key& key) override;
  void Distrust(const Key& key) override;
  Content HashContent(std::span<const std::byte> bytes) override;
  std::shared_ptr<ModelMemo> Memo(const ModelFile& file) override;
  std::unique_ptr<Writer> NewWriter() override;
  void Flush() override;
  Mode mode() const override { return mode_; }
  const std::string& where() const override { return where_; }
  Stats stats() const override;
  std::vector<Note> notes() const override;

  // What other processes published or removed meanwhile.
  void Refresh();

  // For writers.
  struct Found {
    Blob blob;
    bool mapped;  // from a file
  };
  std::optional<Found> Find(const Key& key);
  bool Distrusted(const Key& key) const {
    const std::shared_lock lock(mutex_);
    return IsDistrusted(key);
  }
  void AddPending(const Key& key, const Blob& blob);
  void Enqueue(Build build);
  // This process's turn to pack what begins with `first`, waited for at most options.build_wait_ms; null: another process still
  // packs it. Ends with the last pointer to it.
  std::shared_ptr<const void> TakeTurn(const Digest& first);
  void AddNote(Note note, bool costs);
  const Home* home() const { return home_.get(); }
  const Options& options() const { return options_; }
  bool has_system() const { return !system_.empty(); }
  std::atomic<uint64_t> bytes_packed = 0, bytes_heap = 0, dedup_bytes = 0, bytes_hashed = 0;

 private:
  using Segments = std::vector<std::shared_ptr<Segment>>;
  struct Pending {
    uint64_t fingerprint;
    std::weak_ptr<const void> owner;
    std::span<const std::byte> bytes;
    uint32_t seed;
  };

  void OpenSystemStores();
  void OpenOwn();
  std::shared_ptr<Segment> OpenSegment(const Home& home, const std::string& name, bool own);
  std::optional<Found> FindIn(const Segments& segments, const Digest& identity, uint64_t fingerprint);
  std::optional<Found> FindPending(const Key& key);
  bool Trusted(Segment& segment);
  void MarkBad(Segment& segment, const Note& why);
  bool IsDistrusted(const Key& key) const;

  // publish.cc; all on the worker's thread.
  void Work();
  void Publish(Build& build);
  bool InOthers(const Build& build) const;
  void PublishFile(Build& build, Stamp stamp, Note& why);
  void PublishSegment(Build& build, const Stamp& stamp, Note& why);
  void Settle(const std::string& name, const Digest& id);

  const Options options_;
  Mode mode_;
  std::string where_;
  std::unique_ptr<Home> home_;
  std::vector<std::unique_ptr<Home>> systems_;

  mutable std::shared_mutex mutex_;  // of all down to notes_mutex_
  Segments own_, system_;            // own_: newest first
  std::unordered_map<Digest, std::vector<Pending>, DigestHash> pending_;
  size_t pending_swept_at_ = 64;
  std::set<std::pair<Digest, uint64_t>> distrusted_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<MemoTable>> memos_;  // by device and inode
  bool opening_ = true;  // no digest has been given out yet

  std::mutex turns_mutex_;
  std::map<uint64_t, std::weak_ptr<const void>> turns_;  // by their place in the lock file

  mutable std::mutex notes_mutex_;
  std::vector<Note> notes_;
  std::string fallback_reason_;
  int fallback_error_ = 0;
  std::atomic<uint64_t> hits_ = 0, misses_ = 0, bytes_mapped_ = 0, published_ = 0, bad_ = 0;

  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::deque<Build> work_;
  bool working_ = false, stopping_ = false;
  std::thread worker_;
  int pid_;
};

}  // namespace fusebox::cache
