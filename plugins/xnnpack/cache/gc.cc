// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/gc.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <tuple>

#include "plugins/xnnpack/cache/hooks.h"
#include "plugins/xnnpack/cache/store_dirs.h"

namespace fusebox::cache {
namespace {

constexpr int64_t kDay = 24 * 3600;
constexpr int64_t kKeepBad = 7 * kDay;
constexpr int64_t kKeepMemo = 180 * kDay;

using Segments = std::vector<std::shared_ptr<Segment>>;

class Collection {
 public:
  Collection(const StoreDirs& dirs, const GcOptions& options) : dirs_(dirs), options_(options) {}

  GcReport Run() {
    for (const Fd* directory : {&dirs_.tmp, &dirs_.side, &dirs_.state, &dirs_.models})
      SweepTemps(directory->get());
    SweepOld(dirs_.models.get(), kKeepMemo,
             [](const std::string& name) { return IsStoreName(name, ".fbmm"); });
    if (!dirs_.single_file) {
      SweepOld(dirs_.segments.get(), kKeepBad, [](const std::string& name) {
        return name.ends_with(std::string(kSegmentSuffix) + kBadSuffix);
      });
      Segments segments = OpenAll();
      segments = WithoutSuperseded(segments);
      Evict(segments);
    } else {
      for (const auto& segment : OpenAll()) report_.bytes += segment->file().size;
    }
    SweepState();
    return report_;
  }

 private:
  // A temporary file of a live process is locked.
  void SweepTemps(int directory) {
    for (const std::string& name : List(directory)) {
      if (!IsStoreName(name, ".tmp")) continue;
      const Fd fd(openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
      if (!fd || flock(fd.get(), LOCK_EX | LOCK_NB) == 0) Remove(directory, name);
    }
  }

  template <class F>
  void SweepOld(int directory, int64_t age, const F& is_ours) {
    for (const std::string& name : List(directory)) {
      struct stat status;
      if (!is_ours(name) || fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (time(nullptr) - status.st_mtim.tv_sec > age) Remove(directory, name);
    }
  }

  // Removes records of segments that no longer exist.
  void SweepState() {
    std::set<std::string> ids;
    for (const auto& segment : OpenAll()) ids.insert(Hex(segment->superblock().id));
    for (const std::string& name : List(dirs_.state.get()))
      if ((IsStoreName(name, ".ok") || IsStoreName(name, ".used")) &&
          !ids.contains(name.substr(0, name.find('.'))))
        Remove(dirs_.state.get(), name);
  }

  Segments OpenAll() const {
    Segments segments;
    for (const std::string& name : dirs_.SegmentNames()) {
      Note ignored;
      if (auto segment = Segment::Open(dirs_.segments.get(), name, ignored)) segments.push_back(segment);
    }
    return segments;
  }

  // Segments are visited newest first. The first segment with an identity keeps it, and its fingerprint is
  // the valid one: duplicates remain if a process died between rewrite and removal. Segments in use by this
  // process precede those that another build of the library published meanwhile.
  Segments WithoutSuperseded(Segments segments) {
    const auto rank = [&](const Segment& s) {
      const Digest& id = s.superblock().id;
      return std::tuple(id == options_.newest, options_.in_use.contains(id), s.superblock().created_s);
    };
    std::stable_sort(segments.begin(), segments.end(),
                     [&](const auto& a, const auto& b) { return rank(*a) > rank(*b); });
    std::map<Digest, const Segment*> holds;
    Segments left;
    for (const auto& segment : segments) {
      uint64_t live = 0;
      uint64_t dead = 0;
      for (const Record& r : segment->records())
        (holds.try_emplace(r.identity, segment.get()).first->second == segment.get() ? live : dead) += r.size;
      const auto keep = [&](const Record& r) { return holds.at(r.identity) == segment.get(); };
      if (dead > 0 && live == 0) {
        Remove(dirs_.segments.get(), segment->name());
      } else if (dead * 16 <= live + dead) {
        left.push_back(segment);
      } else if (auto smaller = Rewrite(*segment, keep)) {
        left.push_back(smaller);
      }
    }
    return left;
  }

  // Copies the live part to a new segment, then removes the old one.
  std::shared_ptr<Segment> Rewrite(const Segment& segment, const std::function<bool(const Record&)>& keep) {
    Note why;
    Build build{MakeTemp(dirs_.tmp.get(), why)};
    const Stamp stamp{dirs_.secret, 0, segment.superblock().writer};
    Digest id;
    if (!build.temp.fd || !AppendOld(build, segment, keep, why) || !Finish(build, stamp, id, why) ||
        !NameTemp(build.temp, dirs_.segments.get(), Hex(id) + kSegmentSuffix, false))
      return nullptr;
    Point("rewritten");
    auto smaller = Segment::Open(dirs_.segments.get(), Hex(id) + kSegmentSuffix, why);
    if (!smaller) return nullptr;
    dirs_.RecordVerified(id, smaller->file());
    dirs_.Touch(id);
    Remove(dirs_.segments.get(), segment.name());
    if (options_.in_use.contains(segment.superblock().id)) also_in_use_.insert(id);
    return smaller;
  }

  void Evict(Segments segments) {
    const auto used = [&](const Segment& s) {
      return std::max(dirs_.LastUsed(s.superblock().id), s.file().modified_ns / 1'000'000'000);
    };
    std::stable_sort(segments.begin(), segments.end(),
                     [&](const auto& a, const auto& b) { return used(*a) < used(*b); });
    for (const auto& s : segments) report_.bytes += s->file().size;
    for (const auto& s : segments) {
      if (options_.max_bytes == 0 || report_.bytes <= options_.max_bytes) return;
      const Digest& id = s->superblock().id;
      if (options_.in_use.contains(id) || also_in_use_.contains(id) || id == options_.newest) continue;
      Remove(dirs_.segments.get(), s->name());
      report_.bytes -= s->file().size;
    }
  }

  void Remove(int directory, const std::string& name) {
    if (unlinkat(directory, name.c_str(), 0) != 0) return;
    Point("removed");
    ++report_.removed_files;
  }

  const StoreDirs& dirs_;
  const GcOptions& options_;
  GcReport report_;
  std::set<Digest> also_in_use_;
};

}  // namespace

GcReport Collect(const StoreDirs& dirs, const GcOptions& options) { return Collection(dirs, options).Run(); }

}  // namespace fusebox::cache
