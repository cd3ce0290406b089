// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/home.h"

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

// Parents of a cache that do not exist yet: only this user may look into them.
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
    why = {"unsafe-directory", path + ": everybody may replace what is in it", 0};
    return {};
  }
  return fd;
}

// The first of several processes decides.
void MakeSecret(int side) {
  Digest secret;
  if (!FillRandom(&secret, sizeof secret)) return;
  Note ignored;
  TempFile temp = MakeTemp(side, ignored);
  if (temp.fd && WriteAt(temp.fd.get(), std::as_bytes(std::span(&secret, 1)), 0)) {
    Point("secret");
    NameTemp(temp, side, side, "secret", false);
  }
  DropTemp(temp, side);
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
  Digest self;
};

VerifiedFile MakeVerified(const ModelFile& file) {
  VerifiedFile record{{'F', 'B', 'X', 'S', 'E', 'E', 'N', '\n'}, {}, file, {}};
  const Fd boot(open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  if (boot && read(boot.get(), record.boot, sizeof record.boot - 1) < 0) record.boot[0] = '\0';
  record.self = Hash(std::as_bytes(std::span(&record, 1)).first(offsetof(VerifiedFile, self)));
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
    why = {"path-too-long", "the path of the cache is too long, or has a zero in it", ENAMETOOLONG};
    return "";
  }
  std::error_code error;
  fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const fs::path parent = fs::weakly_canonical(absolute.parent_path(), error);
  if (error || absolute.filename().empty()) {
    why = ErrnoNote(error ? error.value() : ENOENT, path + ": is no path for a cache", "cannot-open");
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

std::unique_ptr<Home> Home::Open(const std::string& given, bool write, bool shippable, Note& why) {
  auto home = std::make_unique<Home>();
  home->path = Canonical(given, why);
  if (home->path.empty()) return nullptr;
  home->single_file = IsSingleFile(given);
  const fs::path path = home->path;
  if (write && !MakeParents(path.parent_path())) {
    why = ErrnoNote(errno, path.parent_path().string() + ": cannot be made", "cannot-create");
    return nullptr;
  }
  Fd parent = OpenParent(path.parent_path().string(), why);
  if (!parent) return nullptr;

  const std::string name = path.filename().string();
  if (home->single_file) {
    // Beside what is no cache nothing is made, and nothing is put in its place.
    struct stat status;
    const bool there = fstatat(parent.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (write && there && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) {
      why = {"not-a-file", home->path + ": is not a regular file", 0};
      return nullptr;
    }
    if (write && there && S_ISREG(status.st_mode) && status.st_size > 0 && !WasSegment(parent.get(), name)) {
      why = {"no-cache",
             home->path + ": is no weight cache, and is left as it is; give the cache another path", 0};
      return nullptr;
    }
    home->side = OpenDirectory(parent.get(), name + ".d", write, why);
    home->file = name;
    home->segments = std::move(parent);
    if (!home->side && write && why.code != "not-permitted" && why.code != "no-space") return nullptr;
  } else {
    home->side = OpenDirectory(parent.get(), name, write, why);
    if (!home->side) return nullptr;
    home->segments = OpenDirectory(home->side.get(), "segments", write, why);
  }
  if (home->side) {
    const int side = home->side.get();
    home->models = OpenDirectory(side, "models", write, why);
    home->state = OpenDirectory(side, "state", write, why);
    home->tmp = OpenDirectory(side, "tmp", write, why);
    home->writable = write && home->segments && home->models && home->state && home->tmp &&
                     faccessat(home->tmp.get(), ".", W_OK, AT_EACCESS) == 0 &&
                     faccessat(home->segments.get(), ".", W_OK, AT_EACCESS) == 0;
    bool known = shippable || ReadSecret(side, home->secret);
    if (!known && home->writable) {
      struct stat status;
      const bool there = fstatat(side, "secret", &status, AT_SYMLINK_NOFOLLOW) == 0;
      // A power cut may leave it empty. What else is not 16 bytes long is none of ours.
      const bool empty = there && S_ISREG(status.st_mode) && status.st_size == 0;
      if (empty) unlinkat(side, "secret", 0);
      if (!there || empty) MakeSecret(side);
      known = ReadSecret(side, home->secret);
      if (!known && there && !empty && why.code.empty())
        why = {"no-cache",
               home->path + ": holds a `secret` that is none of a weight cache; give the cache another path",
               0};
    }
    home->writable = home->writable && known;
  }
  if (write && !home->writable && why.code.empty())
    why = {"not-permitted", home->path + ": cannot be written", EACCES};
  if (!home->segments) return nullptr;
  return home;
}

std::vector<std::string> Home::SegmentNames() const {
  if (single_file) return {file};
  std::vector<std::string> names = List(segments.get());
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(kSegmentSuffix); });
  return names;
}

bool Home::Verified(const Digest& id, const ModelFile& file) const {
  if (!state) return false;
  const VerifiedFile expected = MakeVerified(file);
  const auto content = ReadSmall(state.get(), Hex(id) + ".ok", sizeof expected);
  return content && content->size() == sizeof expected &&
         std::memcmp(content->data(), &expected, sizeof expected) == 0;
}

void Home::RecordVerified(const Digest& id, const ModelFile& file) const {
  const VerifiedFile record = MakeVerified(file);
  if (writable) ReplaceSmall(state.get(), Hex(id) + ".ok", std::as_bytes(std::span(&record, 1)));
}

void Home::Touch(const Digest& id) const {
  if (!writable || time(nullptr) - LastUsed(id) < 24 * 3600) return;
  const std::string name = Hex(id) + ".used";
  const Fd fd(
      openat(state.get(), name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (fd) futimens(fd.get(), nullptr);
}

int64_t Home::LastUsed(const Digest& id) const {
  struct stat status;
  const std::string name = Hex(id) + ".used";
  return state && fstatat(state.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0
             ? status.st_mtim.tv_sec
             : 0;
}

bool Home::Quarantine(const std::string& name) const {
  return writable && renameat(segments.get(), name.c_str(), segments.get(), (name + kBadSuffix).c_str()) == 0;
}

}  // namespace fusebox::cache
