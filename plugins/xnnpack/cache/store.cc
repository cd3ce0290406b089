// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "plugins/xnnpack/cache/writer.h"

namespace fusebox::cache {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Store>> stores;
};

// Never destroyed: sessions may live as long as the process.
Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

// Options with equal names share a store. A forked child starts over.
std::string NameOf(const Options& o) {
  Note ignored;
  const std::string name = o.path == "auto"                ? DefaultPath()
                           : o.path.starts_with(":memory") ? ":memory"
                                                           : Canonical(o.path, ignored);
  return name + '\0' + std::to_string(static_cast<int>(o.mode)) + '\0' + std::to_string(getpid());
}

}  // namespace

std::shared_ptr<Store> Store::Open(const Options& options) {
  if (options.path.empty()) return std::make_shared<Store>(options);
  const std::string name = NameOf(options);
  Registry& registry = TheRegistry();
  // Held while the store is opened, so that concurrent sessions wait instead of opening another.
  const std::lock_guard lock(registry.mutex);
  if (auto store = registry.stores[name].lock()) {
    store->Refresh();
    return store;
  }
  std::erase_if(registry.stores, [](const auto& item) { return item.second.expired(); });
  auto store = std::make_shared<Store>(options);
  registry.stores[name] = store;
  return store;
}

Store::Store(const Options& options) : options_(options), mode_(options.mode), pid_(getpid()) {
  if (options_.path.empty()) {
    mode_ = Mode::kPrivate;
  } else if (options_.path.starts_with(":memory")) {
    mode_ = Mode::kAnonymous;
  } else {
    OpenDirs();
  }
  Refresh();
  opening_ = false;
}

void Store::OpenDirs() {
  Note why;
  const bool write = mode_ == Mode::kReadWrite;
  const std::string path = options_.path == "auto" ? DefaultPath() : options_.path;
  if (path.empty()) {
    why = {"no-home", "no cache directory (neither XDG_CACHE_HOME nor HOME is set to a usable directory)", 0};
  } else {
    dirs_ = StoreDirs::Open(path, write, why);
  }
  if (dirs_ && write) dirs_->EnsureSecret(why);
  if (write && !why.code.empty()) AddNote(why, true);
  if (write && !(dirs_ && dirs_->writable)) mode_ = Mode::kReadOnly;
  if (!dirs_) mode_ = Mode::kAnonymous;
}

std::shared_ptr<Segment> Store::OpenSegment(const std::string& name) {
  Note why;
  auto segment = Segment::Open(dirs_->segments.get(), name, why);
  if (!segment) {
    if (why.code == "missing") return nullptr;
    AddNote(why, true);
    if (why.code == "corrupt") {
      Count(&Stats::segments_bad);
      if (mode_ == Mode::kReadWrite) dirs_->Quarantine(name);
    } else if (dirs_->single_file && mode_ == Mode::kReadWrite) {
      mode_ = Mode::kReadOnly;  // the file may belong to another program: never replace it
    }
    return nullptr;
  }
  const Digest secret = segment->superblock().secret;
  if (secret == dirs_->secret) return segment;
  if (dirs_->single_file && opening_) {
    dirs_->secret = secret;  // the file was copied without its side directory
    return segment;
  }
  AddNote({"other-secret", name + ": belongs to another store", 0}, false);
  return nullptr;
}

void Store::Refresh() {
  if (!dirs_) return;
  const std::unique_lock lock(mutex_);
  Segments now;
  for (const std::string& name : dirs_->SegmentNames()) {
    struct stat status;
    const bool there = fstatat(dirs_->segments.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    const auto same = std::find_if(segments_.begin(), segments_.end(), [&](const auto& segment) {
      return there && segment->name() == name && segment->file().device == status.st_dev &&
             segment->file().inode == status.st_ino &&
             segment->file().size == static_cast<uint64_t>(status.st_size);
    });
    if (same != segments_.end()) {
      now.push_back(*same);
    } else if (auto segment = OpenSegment(name)) {
      now.push_back(segment);
    }
  }
  std::stable_sort(now.begin(), now.end(), [](const auto& a, const auto& b) {
    return a->file().modified_ns > b->file().modified_ns;
  });
  segments_ = std::move(now);
}

std::optional<Blob> Store::Lookup(const Key& key) {
  std::optional<Found> found = Find(key);
  Count(found ? &Stats::hits : &Stats::misses);
  if (!found) return std::nullopt;
  if (found->mapped) Count(&Stats::bytes_mapped, found->blob.bytes.size());
  return std::move(found->blob);
}

std::optional<Store::Found> Store::Find(const Key& key) {
  Segments segments;
  {
    const std::shared_lock lock(mutex_);
    if (distrusted_.contains(key)) return std::nullopt;
    if (auto blob = FindPending(key)) return Found{std::move(*blob), false};
    segments = segments_;
  }
  // Without the lock: it may read files for the first time.
  for (const auto& segment : segments) {
    const Record* const record = segment->Find(key.identity, key.fingerprint);
    if (record && Trusted(*segment)) return Found{{segment->Bytes(*record), record->seed, segment}, true};
  }
  return std::nullopt;
}

std::optional<Blob> Store::FindPending(const Key& key) const {
  const auto at = pending_.find(key.identity);
  if (at == pending_.end()) return std::nullopt;
  for (const Pending& p : at->second) {
    if (p.fingerprint != key.fingerprint) continue;
    if (auto owner = p.owner.lock()) return Blob{p.blob.bytes, p.blob.seed, std::move(owner)};
  }
  return std::nullopt;
}

void Store::AddPending(const Key& key, const Blob& blob) {
  const std::unique_lock lock(mutex_);
  if (pending_.size() >= pending_swept_at_) {
    for (auto at = pending_.begin(); at != pending_.end();) {
      std::erase_if(at->second, [](const Pending& p) { return p.owner.expired(); });
      at = at->second.empty() ? pending_.erase(at) : std::next(at);
    }
    pending_swept_at_ = std::max<size_t>(64, 2 * pending_.size());
  }
  Pending pending{key.fingerprint, blob.owner, blob};
  if (mode_ != Mode::kPrivate) pending.blob.owner.reset();
  pending_[key.identity].push_back(std::move(pending));
}

bool Store::Trusted(Segment& segment) {
  std::call_once(segment.verified, [&] {
    const Digest& id = segment.superblock().id;
    if (dirs_->Verified(id, segment.file())) return;
    if (const auto damage = segment.FindDamage()) {
      MarkBad(segment, *damage);
    } else {
      dirs_->RecordVerified(id, segment.file());
    }
  });
  if (segment.bad) return false;
  if (!segment.touched.exchange(true)) dirs_->Touch(segment.superblock().id);
  return true;
}

void Store::MarkBad(Segment& segment, const Note& why) {
  segment.bad = true;
  Count(&Stats::segments_bad);
  AddNote(why, true);
  if (mode_ != Mode::kReadWrite) return;
  struct stat status;
  const std::shared_lock lock(mutex_);
  // Another process may have put a new file there, which stays.
  if (fstatat(dirs_->segments.get(), segment.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_ino == segment.file().inode)
    dirs_->Quarantine(segment.name());
}

void Store::Distrust(const Key& key) {
  const std::unique_lock lock(mutex_);
  distrusted_.insert(key);
}

bool Store::Distrusted(const Key& key) const {
  const std::shared_lock lock(mutex_);
  return distrusted_.contains(key);
}

Digest Store::HashContent(std::span<const std::byte> bytes) {
  Count(&Stats::bytes_hashed, bytes.size());
  return Hash(bytes, dirs_ ? dirs_->secret.low : 0);
}

std::unique_ptr<Writer> Store::NewWriter(bool dedup) {
  return std::make_unique<Writer>(shared_from_this(), dedup);
}

void Store::AddNote(Note note, bool costs) {
  const std::lock_guard lock(stats_mutex_);
  for (const Note& known : notes_)
    if (known.code == note.code && known.message == note.message) return;
  if (costs && stats_.fallback_reason.empty()) {
    stats_.fallback_reason = note.code;
    stats_.fallback_message = note.message;
  }
  constexpr size_t kMostNotes = 64;
  if (notes_.size() < kMostNotes) notes_.push_back(std::move(note));
}

void Store::Count(uint64_t Stats::* what, uint64_t more) {
  const std::lock_guard lock(stats_mutex_);
  stats_.*what += more;
}

std::vector<Note> Store::notes() const {
  const std::lock_guard lock(stats_mutex_);
  return notes_;
}

Stats Store::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

}  // namespace fusebox::cache
