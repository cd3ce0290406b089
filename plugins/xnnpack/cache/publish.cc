// SPDX-License-Identifier: Apache-2.0
// Writes finished builds to disk, one after the other, on the store's thread.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "plugins/xnnpack/cache/gc.h"
#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::cache {
namespace {

constexpr int kLockMilliseconds = 10'000;

void DigestBlobs(Build& build) {
  std::map<const std::byte*, Digest> known;  // keys may share bytes
  for (Entry& e : build.entries) {
    const auto [at, added] = known.try_emplace(e.bytes.data());
    if (added) at->second = Hash(e.bytes);
    e.record.packed = at->second;
  }
}

}  // namespace

Store::~Store() {
  if (!worker_.joinable()) return;
  if (getpid() != pid_) {
    // After a fork the thread does not exist, and the files belong to the parent.
    worker_.detach();
    for (Build& build : work_) build.temp.name.clear();
    return;
  }
  {
    const std::lock_guard lock(work_mutex_);
    stopping_ = true;
  }
  work_changed_.notify_all();
  worker_.join();
}

void Store::Enqueue(Build build) {
  const std::lock_guard lock(work_mutex_);
  try {
    if (!worker_.joinable()) worker_ = std::thread([this] { Work(); });
  } catch (const std::exception&) {
    Publish(build);  // no thread available: publish here
    return;
  }
  work_.push_back(std::move(build));
  work_changed_.notify_all();
}

void Store::Flush() {
  if (getpid() != pid_) return;
  std::unique_lock lock(work_mutex_);
  work_changed_.wait(lock, [this] { return work_.empty() && !working_; });
}

void Store::Work() {
  // Lower priority than inference. On Linux this applies to the thread.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10);
  std::unique_lock lock(work_mutex_);
  for (;;) {
    work_changed_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (work_.empty()) return;
    Build build = std::move(work_.front());
    work_.pop_front();
    working_ = true;
    lock.unlock();
    try {
      Publish(build);
      build = {};
    } catch (const std::bad_alloc&) {
      AddNote({"no-memory", "a build was not published", ENOMEM}, true);
    }
    lock.lock();
    working_ = false;
    work_changed_.notify_all();
  }
}

bool Store::InOthers(const Build& build) const {
  const std::shared_lock lock(mutex_);
  return std::all_of(build.entries.begin(), build.entries.end(), [&](const Entry& e) {
    return std::any_of(segments_.begin(), segments_.end(), [&](const auto& segment) {
      return !segment->bad && segment->Find(e.record.identity, e.record.fingerprint);
    });
  });
}

void Store::Publish(Build& build) {
  DigestBlobs(build);
  Note why;
  if (!TryPublish(build, why) && !why.code.empty()) AddNote(why, true);
}

// False without `why`: another process published the same.
bool Store::TryPublish(Build& build, Note& why) {
  Refresh();
  if (InOthers(build)) return false;
  const bool file = dirs_->single_file;
  Stamp stamp{dirs_->secret, 0, options_.writer};
  Digest id;
  if (build.staged && !WriteStaged(build, why)) return false;
  if (!file && !Finish(build, stamp, id, why)) return false;
  // Without the lock the result is valid too, but several files may have the same contents.
  const Fd lock = Lock(dirs_->side.get(), "lock", kLockMilliseconds);
  Point("locked");
  Refresh();
  if (InOthers(build) || mode_ != Mode::kReadWrite) return false;
  if (file && (!AppendOwn(build, stamp, why) || !Finish(build, stamp, id, why))) return false;
  const std::string name = file ? dirs_->file : Hex(id) + kSegmentSuffix;
  if (!NameTemp(build.temp, dirs_->segments.get(), name, file) && (file || errno != EEXIST)) {
    why = ErrnoNote(errno, name + ": cannot be published", "cannot-publish");
    return false;
  }
  Settle(name, id);
  return true;
}

// Copies the contents of the single file to its replacement.
bool Store::AppendOwn(Build& build, Stamp& stamp, Note& why) {
  std::set<Digest> renewed;
  for (const Entry& e : build.entries) renewed.insert(e.record.identity);
  Segments old;
  {
    const std::shared_lock lock(mutex_);
    old = segments_;
  }
  for (const auto& segment : old) {
    stamp.generation = segment->superblock().generation + 1;
    const auto keep = [&](const Record& r) {
      return !segment->bad && !renewed.contains(r.identity) && build.used + r.size <= tuning.max_bytes;
    };
    if (!AppendOld(build, *segment, keep, why)) return false;
  }
  return true;
}

// Records the new file as verified and removes what it supersedes.
void Store::Settle(const std::string& name, const Digest& id) {
  Point("linked");
  if (tuning.durable) fsync(dirs_->segments.get());
  Point("directory-synced");
  Count(&Stats::segments_published);
  Note ignored;
  if (const auto segment = Segment::Open(dirs_->segments.get(), name, ignored)) {
    std::call_once(segment->verified, [] {});
    dirs_->RecordVerified(id, segment->file());
    Point("recorded");
    dirs_->Touch(id);
    segment->touched = true;
    const std::unique_lock lock(mutex_);
    if (dirs_->single_file) segments_.clear();
    segments_.insert(segments_.begin(), segment);
  }
  GcOptions gc{tuning.max_bytes, {}, id};
  {
    const std::shared_lock lock(mutex_);
    for (const auto& segment : segments_)
      if (segment->touched) gc.in_use.insert(segment->superblock().id);
  }
  Collect(*dirs_, gc);
}

}  // namespace fusebox::cache
