// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/store_dirs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "plugins/xnnpack/cache/hooks.h"

namespace fusebox::cache {
namespace {

namespace fs = std::filesystem;

std::string Absolute(const char* variable, const char* below) {
  const char* const value = secure_getenv(variable);
  return value && value[0] == '/' ? std::string(value) + below : "";
}

// Creates missing parents of a cache, readable only by this user.
bool MakeParents(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return true;
  return MakeParents(path.parent_path()) && (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST);
}

Fd OpenParent(const std::string& path, Note& why) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) {
    why = ErrnoNote(errno, path + ": cannot be opened", "cannot-open");
    return {};
  }
  if (status.st_mode & S_IWOTH && !(status.st_mode & S_ISVTX)) {
    why = {"unsafe-directory", path + ": all users may replace its contents", 0};
    return {};
  }
  return fd;
}

// The first of several processes wins.
void MakeSecret(int side) {
  Digest secret;
  if (!FillRandom(&secret, sizeof secret)) return;
  Note ignored;
  TempFile temp = MakeTemp(side, ignored);
  if (temp.fd && WriteAt(temp.fd.get(), std::as_bytes(std::span(&secret, 1)), 0)) {
    Point("secret");
    NameTemp(temp, side, "secret", false);
  }
}

bool ReadSecret(int side, Digest& secret) {
  const auto content = ReadSmall(side, "secret", sizeof secret);
  if (!content || content->size() != sizeof secret) return false;
  std::memcpy(&secret, content->data(), sizeof secret);
  return true;
}

struct VerifiedFile {
  char magic[8];
  char boot[48];
  ModelFile file;
};

VerifiedFile MakeVerified(const ModelFile& file) {
  VerifiedFile record{{'F', 'B', 'X', 'S', 'E', 'E', 'N', '\n'}, {}, file};
  const Fd boot(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (boot && read(boot.get(), record.boot, sizeof record.boot - 1) < 0) record.boot[0] = '\0';
  return record;
}

}  // namespace

std::string DefaultPath() {
  const std::string xdg = Absolute("XDG_CACHE_HOME", "/fusebox");
  return !xdg.empty() ? xdg : Absolute("HOME", "/.cache/fusebox");
}

bool IsSingleFile(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) return !S_ISDIR(status.st_mode) && path.back() != '/';
  const std::string name = fs::path(path).filename().string();
  return name.find('.', 1) != std::string::npos;
}

std::string Canonical(const std::string& path, Note& why) {
  if (path.find('\0') != std::string::npos || path.size() >= PATH_MAX) {
    why = {"path-too-long", "the path of the cache is too long or contains a NUL", ENAMETOOLONG};
    return "";
  }
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const fs::path parent = fs::weakly_canonical(absolute.parent_path(), error);
  if (error || absolute.filename().empty()) {
    why = ErrnoNote(error ? error.value() : ENOENT, path + ": is not usable as a cache path", "cannot-open");
    return "";
  }
  return (parent / absolute.filename()).string();
}

bool WasSegment(int directory, const std::string& file) {
  struct stat status;
  if (fstatat(directory, (file + ".d/secret").c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  char magic[sizeof kMagic] = {};
  const Fd fd(openat(directory, file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  return fd && pread(fd.get(), magic, sizeof magic, 0) == sizeof magic &&
         std::memcmp(magic, kMagic, sizeof magic) == 0;
}

std::unique_ptr<StoreDirs> StoreDirs::Open(const std::string& given, bool write, Note& why) {
  auto dirs = std::make_unique<StoreDirs>();
  dirs->path = Canonical(given, why);
  if (dirs->path.empty()) return nullptr;
  dirs->single_file = IsSingleFile(given);
  const fs::path path = dirs->path;
  if (write && !MakeParents(path.parent_path())) {
    why = ErrnoNote(errno, path.parent_path().string() + ": cannot be created", "cannot-create");
    return nullptr;
  }
  Fd parent = OpenParent(path.parent_path().string(), why);
  if (!parent) return nullptr;
  const std::string name = path.filename().string();
  if (dirs->single_file) {
    if (!dirs->OpenFile(std::move(parent), name, write, why)) return nullptr;
  } else {
    dirs->side = OpenDirectory(parent.get(), name, write, why);
    if (!dirs->side) return nullptr;
    dirs->segments = OpenDirectory(dirs->side.get(), "segments", write, why);
  }
  dirs->writable = dirs->side && dirs->OpenDirectories(write, why);
  if (dirs->side) ReadSecret(dirs->side.get(), dirs->secret);
  if (write && !dirs->writable && why.code.empty())
    why = {"not-permitted", dirs->path + ": cannot be written", EACCES};
  return dirs->segments ? std::move(dirs) : nullptr;
}

// Creates nothing next to a file that is not a cache, and never replaces it.
bool StoreDirs::OpenFile(Fd parent, const std::string& name, bool write, Note& why) {
  struct stat status;
  if (write && fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
      why = {"not-a-file", path + ": is not a regular file", 0};
      return false;
    }
    if (S_ISREG(status.st_mode) && status.st_size > 0 && !WasSegment(parent.get(), name)) {
      why = {"no-cache", path + ": is not a weight cache; it is not changed; choose another cache path", 0};
      return false;
    }
  }
  side = OpenDirectory(parent.get(), name + ".d", write, why);
  file = name;
  segments = std::move(parent);
  return side || !write || why.code == "not-permitted" || why.code == "no-space";
}

// Returns whether everything is writable.
bool StoreDirs::OpenDirectories(bool write, Note& why) {
  models = OpenDirectory(side.get(), "models", write, why);
  state = OpenDirectory(side.get(), "state", write, why);
  tmp = OpenDirectory(side.get(), "tmp", write, why);
  return write && segments && models && state && tmp && faccessat(tmp.get(), ".", W_OK, AT_EACCESS) == 0 &&
         faccessat(segments.get(), ".", W_OK, AT_EACCESS) == 0;
}

void StoreDirs::EnsureSecret(Note& why) {
  if (!writable || ReadSecret(side.get(), secret)) return;
  struct stat status;
  const bool there = fstatat(side.get(), "secret", &status, AT_SYMLINK_NOFOLLOW) == 0;
  // A power cut may leave it empty. Any other size is not the store's file.
  const bool empty = there && S_ISREG(status.st_mode) && status.st_size == 0;
  if (empty) unlinkat(side.get(), "secret", 0);
  if (!there || empty) MakeSecret(side.get());
  writable = ReadSecret(side.get(), secret);
  if (writable || !why.code.empty()) return;
  why = there && !empty
            ? Note{"no-cache",
                   path + ": contains a `secret` that is not of a weight cache; choose another cache path", 0}
            : Note{"not-permitted", path + ": cannot be written", EACCES};
}

std::vector<std::string> StoreDirs::SegmentNames() const {
  if (single_file) return {file};
  std::vector<std::string> names = List(segments.get());
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSegmentSuffix); });
  return names;
}

bool StoreDirs::Verified(const Digest& id, const ModelFile& file) const {
  if (!state) return false;
  const VerifiedFile expected = MakeVerified(file);
  const auto content = ReadSmall(state.get(), Hex(id) + ".ok", sizeof expected);
  return content && content->size() == sizeof expected &&
         std::memcmp(content->data(), &expected, sizeof expected) == 0;
}

void StoreDirs::RecordVerified(const Digest& id, const ModelFile& file) const {
  const VerifiedFile record = MakeVerified(file);
  if (writable) ReplaceSmall(state.get(), Hex(id) + ".ok", std::as_bytes(std::span(&record, 1)));
}

void StoreDirs::Touch(const Digest& id) const {
  if (!writable || time(nullptr) - LastUsed(id) < 24 * 3600) return;
  const std::string name = Hex(id) + ".used";
  const Fd fd(
      openat(state.get(), name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (fd) futimens(fd.get(), nullptr);
}

int64_t StoreDirs::LastUsed(const Digest& id) const {
  struct stat status;
  const std::string name = Hex(id) + ".used";
  return state && fstatat(state.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
             ? status.st_mtim.tv_sec
             : 0;
}

bool StoreDirs::Quarantine(const std::string& name) const {
  return writable && renameat(segments.get(), name.c_str(), segments.get(), (name + kBadSuffix).c_str()) == 0;
}

}  // namespace fusebox::cache
