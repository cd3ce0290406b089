// SPDX-License-Identifier: Apache-2.0
// Opening a store's segments and finding in them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plugins/xnnpack/cache/store_impl.h"

namespace fusebox::cache {

StoreImpl::StoreImpl(const Options& options) : options_(options), mode_(options.mode), pid_(getpid()) {
  if (options_.path.empty()) mode_ = Mode::kOff;
  if (mode_ == Mode::kOff) return;
  OpenSystemStores();
  if (options_.path.starts_with(":memory")) {
    mode_ = Mode::kAnonymous;
  } else if (mode_ != Mode::kAnonymous) {
    OpenOwn();
  }
  Refresh();
  opening_ = false;
}

void StoreImpl::OpenSystemStores() {
  for (const std::string& path : options_.system) {
    Note why;
    auto home = Home::Open(path, false, true, why);
    if (!home) {
      AddNote(why, false);
      continue;
    }
    for (const std::string& name : home->SegmentNames())
      if (auto segment = OpenSegment(*home, name, false)) system_.push_back(segment);
    systems_.push_back(std::move(home));
  }
}

void StoreImpl::OpenOwn() {
  Note why;
  const std::string path = options_.path == "auto" ? DefaultPath() : options_.path;
  if (path.empty()) {
    why = {"no-home", "neither XDG_CACHE_HOME nor HOME names a directory to cache in", 0};
  } else {
    home_ = Home::Open(path, mode_ == Mode::kReadWrite, options_.shippable, why);
  }
  if (home_) where_ = home_->path;
  if (!why.code.empty() && mode_ == Mode::kReadWrite) AddNote(why, true);
  if (mode_ == Mode::kReadWrite && !(home_ && home_->writable)) mode_ = Mode::kReadOnly;
  if (!home_) mode_ = Mode::kAnonymous;
}

std::shared_ptr<Segment> StoreImpl::OpenSegment(const Home& home, const std::string& name, bool own) {
  Segment::Fault fault;
  Note why;
  auto segment = Segment::Open(home.segments.get(), name, fault, why);
  if (fault == Segment::Fault::kMissing) return nullptr;
  if (fault == Segment::Fault::kCorrupt) {
    ++bad_;
    if (own && mode_ == Mode::kReadWrite) home.Quarantine(name);
  }
  if (fault != Segment::Fault::kNone) {
    AddNote(why, true);
    // Nobody's file is replaced whom it may belong to.
    if (own && home.single_file && fault != Segment::Fault::kCorrupt && mode_ == Mode::kReadWrite)
      mode_ = Mode::kReadOnly;
    return nullptr;
  }
  const Digest secret = segment->superblock().secret;
  if (secret == home.secret) return segment;
  if (own && home.single_file && opening_) {
    home_->secret = secret;  // the file was copied here without its side directory
    return segment;
  }
  AddNote({"other-secret", name + ": was made for another store", 0}, false);
  return nullptr;
}

void StoreImpl::Refresh() {
  if (!home_) return;
  const std::unique_lock lock(mutex_);
  Segments now;
  for (const std::string& name : home_->SegmentNames()) {
    struct stat status;
    const bool there = fstatat(home_->segments.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    const auto same = std::find_if(own_.begin(), own_.end(), [&](const auto& segment) {
      return there && segment->name() == name && segment->file().device == status.st_dev &&
             segment->file().inode == status.st_ino &&
             segment->file().size == static_cast<uint64_t>(status.st_size);
    });
    if (same != own_.end()) {
      now.push_back(*same);
    } else if (auto segment = OpenSegment(*home_, name, true)) {
      now.push_back(segment);
    }
  }
  std::stable_sort(now.begin(), now.end(), [](const auto& a, const auto& b) {
    return a->file().modified_ns > b->file().modified_ns;
  });
  own_ = std::move(now);
}

std::optional<Blob> StoreImpl::Lookup(const Key& key) {
  std::optional<Found> found = Find(key);
  if (!found) {
    ++misses_;
    return std::nullopt;
  }
  ++hits_;
  if (found->mapped) bytes_mapped_ += found->blob.bytes.size();
  return std::move(found->blob);
}

std::optional<StoreImpl::Found> StoreImpl::Find(const Key& key) {
  Segments system, own;
  {
    const std::shared_lock lock(mutex_);
    if (IsDistrusted(key)) return std::nullopt;
    if (auto found = FindPending(key)) return found;
    system = system_;
    own = own_;
  }
  // Without the lock, for it may read files for the first time.
  if (auto found = FindIn(system, key.identity.plain, key.fingerprint)) return found;
  return FindIn(own, key.identity.keyed, key.fingerprint);
}

std::optional<StoreImpl::Found> StoreImpl::FindIn(const Segments& segments, const Digest& identity,
                                                  uint64_t fingerprint) {
  for (const auto& segment : segments) {
    const Record* const record = segment->Find(identity, fingerprint);
    if (!record || !Trusted(*segment)) continue;
    return Found{{segment->Bytes(*record), record->seed, segment}, true};
  }
  return std::nullopt;
}

std::optional<StoreImpl::Found> StoreImpl::FindPending(const Key& key) {
  const auto at = pending_.find(key.identity.keyed);
  if (at == pending_.end()) return std::nullopt;
  for (const Pending& p : at->second) {
    if (p.fingerprint != key.fingerprint) continue;
    if (auto owner = p.owner.lock()) return Found{{p.bytes, p.seed, std::move(owner)}, false};
  }
  return std::nullopt;
}

bool StoreImpl::Trusted(Segment& segment) {
  std::call_once(segment.verified, [&] {
    // A system store's directory is not ours to write, so that ours remembers for it.
    const bool remembered = home_ && options_.verify == Verify::kOnce;
    const Digest& id = segment.superblock().id;
    if (options_.verify == Verify::kNever || (remembered && home_->Verified(id, segment.file()))) return;
    if (const Record* const bad = segment.FirstBadBlob()) {
      MarkBad(
          segment,
          {"corrupt",
           segment.name() + ": bytes at " + std::to_string(bad->offset) + " do not match their checksum", 0});
    } else if (remembered) {
      home_->RecordVerified(id, segment.file());
    }
  });
  if (segment.bad) return false;
  if (home_ && !segment.touched.exchange(true)) home_->Touch(segment.superblock().id);
  return true;
}

void StoreImpl::MarkBad(Segment& segment, const Note& why) {
  segment.bad = true;
  ++bad_;
  AddNote(why, true);
  if (mode_ != Mode::kReadWrite) return;
  struct stat status;
  const std::shared_lock lock(mutex_);
  const bool own = std::any_of(own_.begin(), own_.end(), [&](const auto& s) { return s.get() == &segment; });
  // Not what another process may have put in its place.
  if (own && fstatat(home_->segments.get(), segment.name().c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_ino == segment.file().inode)
    home_->Quarantine(segment.name());
}

void StoreImpl::Distrust(const Key& key) {
  const std::unique_lock lock(mutex_);
  distrusted_.insert({key.identity.keyed, key.fingerprint});
}

bool StoreImpl::IsDistrusted(const Key& key) const {
  return distrusted_.contains({key.identity.keyed, key.fingerprint});
}

void StoreImpl::AddPending(const Key& key, const Blob& blob) {
  const std::unique_lock lock(mutex_);
  if (pending_.size() >= pending_swept_at_) {
    for (auto at = pending_.begin(); at != pending_.end();) {
      std::erase_if(at->second, [](const Pending& p) { return p.owner.expired(); });
      at = at->second.empty() ? pending_.erase(at) : std::next(at);
    }
    pending_swept_at_ = std::max<size_t>(64, 2 * pending_.size());
  }
  pending_[key.identity.keyed].push_back({key.fingerprint, blob.owner, blob.bytes, blob.seed});
}

Content StoreImpl::HashContent(std::span<const std::byte> bytes) {
  bytes_hashed += bytes.size();
  Content content;
  content.keyed = Hash(bytes, home_ ? home_->secret.low : 0);
  if (!system_.empty()) content.plain = Hash(bytes, 0);
  return content;
}

void StoreImpl::AddNote(Note note, bool costs) {
  const std::lock_guard lock(notes_mutex_);
  for (const Note& known : notes_)
    if (known.code == note.code && known.message == note.message) return;
  if (costs && fallback_reason_.empty()) {
    fallback_reason_ = note.code;
    fallback_error_ = note.error;
  }
  constexpr size_t kMostNotes = 64;
  if (notes_.size() < kMostNotes) notes_.push_back(std::move(note));
}

std::vector<Note> StoreImpl::notes() const {
  const std::lock_guard lock(notes_mutex_);
  return notes_;
}

Stats StoreImpl::stats() const {
  const std::lock_guard lock(notes_mutex_);
  return {hits_,        misses_,    bytes_mapped_, bytes_packed,     bytes_heap,     dedup_bytes,
          bytes_hashed, published_, bad_,          fallback_reason_, fallback_error_};
}

}  // namespace fusebox::cache
