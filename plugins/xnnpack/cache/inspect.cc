// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/inspect.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "plugins/xnnpack/cache/gc.h"

namespace fusebox::cache {
namespace {

namespace fs = std::filesystem;
using State = SegmentView::State;

std::string PathFrom(const std::string& given, Note& why) {
  if (given.starts_with(":memory")) {
    why = {"no-cache", given + ": packed weights in memory are not stored", 0};
    return "";
  }
  const std::string path = given == "auto" ? DefaultPath() : given;
  if (path.empty())
    why = {"no-home", "no cache directory (neither XDG_CACHE_HOME nor HOME is set to a usable directory)", 0};
  return path;
}

bool Exists(int directory, const std::string& name, struct stat* status) {
  return fstatat(directory, name.c_str(), status, AT_SYMLINK_NOFOLLOW) == 0;
}

bool IsSegmentName(const std::string& name) {
  return name.ends_with(kSegmentSuffix) || name.ends_with(std::string(kSegmentSuffix) + kBadSuffix);
}

std::string IdOf(const std::string& name) {
  const std::string_view suffix = kSegmentSuffix;
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

SegmentView View(const StoreDirs& dirs, const std::string& name) {
  SegmentView view{.id = IdOf(name), .name = name};
  struct stat status;
  if (Exists(dirs.segments.get(), name, &status)) view.bytes = static_cast<uint64_t>(status.st_size);
  if (name.ends_with(kBadSuffix)) {
    view.why = {"put-aside", "it was damaged and has been renamed", 0};
    return view;
  }
  view.segment = Segment::Open(dirs.segments.get(), name, view.why);
  if (!view.segment) {
    view.state = view.why.code == "corrupt" ? State::kBad : State::kUnusable;
    return view;
  }
  const Digest& id = view.segment->superblock().id;
  view.used_s = std::max(dirs.LastUsed(id), view.segment->file().modified_ns / 1'000'000'000);
  // A single file without its side directory has its own secret.
  const bool ours =
      view.segment->superblock().secret == dirs.secret || (dirs.single_file && dirs.secret.zero());
  if (!ours) {
    view.state = State::kUnusable;
    view.why = {"other-secret", name + ": belongs to another store", 0};
  } else {
    view.state = dirs.Verified(id, view.segment->file()) ? State::kVerified : State::kUnverified;
  }
  return view;
}

bool HasSecret(const StoreDirs& dirs) {
  struct stat status;
  return dirs.side && Exists(dirs.side.get(), "secret", &status) && status.st_size == sizeof(Digest);
}

// A store opened for writing, locked, with its contents. Never creates a store.
struct Opened {
  std::unique_ptr<StoreDirs> dirs;
  Fd lock;
  StoreView view;
};
std::optional<Opened> OpenToWrite(const std::string& given, Note& why) {
  constexpr int kLockMilliseconds = 10'000;
  std::optional<StoreView> view = Inspect(given, why);
  if (!view) return std::nullopt;
  auto dirs = StoreDirs::Open(view->dirs->path, true, why);
  if (!dirs || !dirs->writable) {
    if (why.code.empty()) why = {"not-permitted", view->dirs->path + ": cannot be written", EACCES};
    return std::nullopt;
  }
  Fd lock = Lock(dirs->side.get(), "lock", kLockMilliseconds);
  view = Inspect(given, why);
  if (!view) return std::nullopt;
  return Opened{std::move(dirs), std::move(lock), std::move(*view)};
}

// Removes files and records them.
class Remover {
 public:
  explicit Remover(std::vector<Removed>& removed) : removed_(removed) {}

  void File(int directory, const std::string& folder, const std::string& name) {
    struct stat status;
    if (!Exists(directory, name, &status) || !S_ISREG(status.st_mode)) return;
    if (unlinkat(directory, name.c_str(), 0) == 0)
      removed_.push_back({folder + "/" + name, static_cast<uint64_t>(status.st_size)});
  }
  // Removes the store's files in a folder, by these suffixes; then the folder, if it is empty.
  void Folder(int parent, const Fd& directory, const std::string& path, const char* name,
              std::initializer_list<std::string_view> suffixes) {
    const std::string folder = path + "/" + name;
    for (const std::string& file : List(directory.get())) {
      const auto fits = [&](std::string_view suffix) { return IsStoreName(file, suffix); };
      if (std::any_of(suffixes.begin(), suffixes.end(), fits) || IsStoreName(file, ".tmp"))
        File(directory.get(), folder, file);
    }
    unlinkat(parent, name, AT_REMOVEDIR);
  }
  // Removes a small file of fixed name, if it has this size; otherwise it is not the store's.
  void Fixed(int directory, const std::string& folder, const char* name, off_t size) {
    struct stat status;
    if (Exists(directory, name, &status) && status.st_size == size) File(directory, folder, name);
  }

 private:
  std::vector<Removed>& removed_;
};

std::string FolderOf(const StoreDirs& dirs) {
  return dirs.single_file ? fs::path(dirs.path).parent_path().string() : dirs.path + "/segments";
}

void RemoveState(const StoreDirs& dirs, const SegmentView& view) {
  if (!view.segment) return;
  const std::string id = Hex(view.segment->superblock().id);
  for (const char* suffix : {".ok", ".used"}) unlinkat(dirs.state.get(), (id + suffix).c_str(), 0);
}

}  // namespace

std::string StoreView::PathOf(const SegmentView& segment) const {
  return FolderOf(*dirs) + "/" + segment.name;
}

std::optional<StoreView> Inspect(const std::string& given, Note& why) {
  const std::string path = PathFrom(given, why);
  if (path.empty()) return std::nullopt;
  const std::string canonical = Canonical(path, why);
  if (canonical.empty()) return std::nullopt;
  struct stat status;
  if (lstat(canonical.c_str(), &status) != 0) {
    const bool gone = errno == ENOENT || errno == ENOTDIR;
    why = gone ? Note{"missing", canonical + ": no weight cache here", 0}
               : ErrnoNote(errno, canonical + ": cannot be read", "cannot-open");
    return std::nullopt;
  }
  if (S_ISDIR(status.st_mode) && lstat((canonical + "/segments").c_str(), &status) != 0 && errno == ENOENT) {
    why = {"no-cache", canonical + ": is not a weight cache (it has no segments)", 0};
    return std::nullopt;
  }
  StoreView view;
  view.dirs = StoreDirs::Open(path, false, why);
  if (!view.dirs) {
    why.message = canonical + ": " + why.message;
    return std::nullopt;
  }
  why = {};  // of directories that may be missing
  if (view.dirs->single_file) {
    view.segments.push_back(View(*view.dirs, view.dirs->file));
    const SegmentView& only = view.segments.front();
    if (!only.segment && only.why.code != "newer-format" &&
        !WasSegment(view.dirs->segments.get(), view.dirs->file)) {
      why = {"no-cache", canonical + ": is not a weight cache: " + only.why.message, 0};
      return std::nullopt;
    }
    const std::string aside = view.dirs->file + kBadSuffix;
    if (Exists(view.dirs->segments.get(), aside, &status)) view.segments.push_back(View(*view.dirs, aside));
  } else {
    for (const std::string& name : List(view.dirs->segments.get()))
      if (IsSegmentName(name)) view.segments.push_back(View(*view.dirs, name));
    if (view.segments.empty() && !HasSecret(*view.dirs)) {
      why = {"no-cache", canonical + ": is not a weight cache (it has neither a secret nor segments)", 0};
      return std::nullopt;
    }
  }
  return view;
}

std::optional<StoreView> VerifyAll(const std::string& path, std::vector<Removed>& put_aside, Note& why) {
  Note ignored;  // not writable: the result is the same
  auto writable = OpenToWrite(path, ignored);
  std::optional<StoreView> view = writable ? std::move(writable->view) : Inspect(path, why);
  if (!view) return std::nullopt;
  for (SegmentView& s : view->segments) {
    if (s.name.ends_with(kBadSuffix)) continue;
    if (s.segment) {
      if (auto damage = s.segment->FindDamage()) {
        s.state = State::kBad;
        s.why = std::move(*damage);
      } else if (s.state != State::kUnusable) {
        s.state = State::kVerified;
        if (writable) writable->dirs->RecordVerified(s.segment->superblock().id, s.segment->file());
      }
    }
    if (s.state == State::kBad && writable && writable->dirs->Quarantine(s.name))
      put_aside.push_back({view->PathOf(s), s.bytes});
  }
  return view;
}

bool CollectGarbage(const std::string& path, uint64_t max_bytes, std::vector<Removed>& removed, Note& why) {
  const auto opened = OpenToWrite(path, why);
  if (!opened) return false;
  Collect(*opened->dirs, {.max_bytes = std::max<uint64_t>(max_bytes, 1)});
  for (const SegmentView& s : opened->view.segments) {
    struct stat status;
    if (!Exists(opened->dirs->segments.get(), s.name, &status))
      removed.push_back({opened->view.PathOf(s), s.bytes});
  }
  return true;
}

bool RemoveSegments(const std::string& path, const std::vector<std::string>& ids,
                    std::vector<Removed>& removed, Note& why) {
  const auto opened = OpenToWrite(path, why);
  if (!opened) return false;
  const std::vector<SegmentView>& segments = opened->view.segments;
  std::vector<const SegmentView*> chosen;
  for (const std::string& id : ids) {
    const auto at =
        std::find_if(segments.begin(), segments.end(), [&](const SegmentView& s) { return s.id == id; });
    if (at == segments.end()) {
      why = {"no-segment", opened->dirs->path + ": no segment " + id, 0};
      return false;
    }
    chosen.push_back(&*at);
  }
  Remover remove(removed);
  for (const SegmentView* s : chosen) {
    remove.File(opened->dirs->segments.get(), FolderOf(*opened->dirs), s->name);
    RemoveState(*opened->dirs, *s);
  }
  return true;
}

bool RemoveStore(const std::string& path, std::vector<Removed>& removed, Note& why) {
  const auto opened = OpenToWrite(path, why);
  if (!opened) return false;
  const StoreDirs& dirs = *opened->dirs;
  Remover remove(removed);
  const std::string side = dirs.single_file ? dirs.path + ".d" : dirs.path;
  const int at = dirs.side.get();
  if (dirs.single_file) {
    for (const std::string& name : {dirs.file, dirs.file + kBadSuffix})
      remove.File(dirs.segments.get(), FolderOf(dirs), name);
  } else {
    for (const std::string& name : List(dirs.segments.get()))
      if (IsSegmentName(name)) remove.File(dirs.segments.get(), FolderOf(dirs), name);
    unlinkat(at, "segments", AT_REMOVEDIR);
  }
  remove.Folder(at, dirs.models, side, "models", {".fbmm"});
  remove.Folder(at, dirs.state, side, "state", {".ok", ".used"});
  remove.Folder(at, dirs.tmp, side, "tmp", {});
  remove.Fixed(at, side, "secret", sizeof(Digest));
  for (const char* name : {"building", "lock"}) remove.Fixed(at, side, name, 0);
  rmdir(side.c_str());
  return true;
}

}  // namespace fusebox::cache
