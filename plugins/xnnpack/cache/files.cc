// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plugins/xnnpack/cache/hooks.h"

namespace fusebox::cache {
namespace {

bool OnlyOurs(const struct stat& status, const std::string& name, Note& why) {
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    why = {"foreign-owner", name + ": belongs to another user", 0};
  } else if (status.st_mode & (S_IWGRP | S_IWOTH)) {
    why = {"writable-by-others", name + ": other users may write to it", 0};
  } else {
    return true;
  }
  return false;
}

const char* CodeOf(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "no-space";
    case EFBIG: return "file-size-limit";
    case EMFILE:
    case ENFILE: return "no-descriptors";
    case ENAMETOOLONG: return "path-too-long";
    case ELOOP: return "symlink";
    case EROFS:
    case EACCES:
    case EPERM: return "not-permitted";
    case ENOMEM: return "no-memory";
    case ENOTDIR: return "not-a-directory";
    case EOPNOTSUPP: return "not-supported";
    default: return nullptr;
  }
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Note ErrnoNote(int error, const std::string& what, const char* code_otherwise) {
  const char* code = CodeOf(error);
  return {code ? code : code_otherwise, what + ": " + std::strerror(error), error};
}

Fd OpenDirectory(int at, const std::string& name, bool create, Note& why) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  Fd fd(openat(at, name.c_str(), kFlags));
  if (!fd && errno == ENOENT && create) {
    if (mkdirat(at, name.c_str(), 0700) != 0 && errno != EEXIST) {
      why = ErrnoNote(errno, name + ": cannot be created", "cannot-create");
      return {};
    }
    fd = Fd(openat(at, name.c_str(), kFlags));
  }
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) {
    const int error = errno;
    why = ErrnoNote(error, name + ": cannot be opened", "cannot-open");
    struct stat link;
    if (error == ENOTDIR && fstatat(at, name.c_str(), &link, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(link.st_mode))
      why = {"symlink", name + ": is a symbolic link", ELOOP};
    return {};
  }
  return OnlyOurs(status, name, why) ? std::move(fd) : Fd();
}

Fd OpenTrusted(int directory, const std::string& name, Note& why) {
  Fd fd(Fails("open")
            ? -1
            : openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) {
    why = ErrnoNote(errno, name + ": cannot be opened", errno == ENOENT ? "missing" : "cannot-open");
    return {};
  }
  if (!S_ISREG(status.st_mode)) {
    why = {"not-a-file", name + ": is not a regular file", 0};
    return {};
  }
  return OnlyOurs(status, name, why) ? std::move(fd) : Fd();
}

bool WithinFileLimit(uint64_t end) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur)
    return true;
  errno = EFBIG;
  return false;
}

bool WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset) {
  if (Fails("write") || !WithinFileLimit(offset + bytes.size())) return false;
  while (!bytes.empty()) {
    const ssize_t n =
        pwrite(fd, bytes.data(), std::min<size_t>(bytes.size(), 1u << 30), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0) errno = ENOSPC;
      return false;
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

std::optional<std::string> ReadSmall(int directory, const std::string& name, size_t max_size) {
  Note ignored;
  const Fd fd = OpenTrusted(directory, name, ignored);
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0 || static_cast<uint64_t>(status.st_size) > max_size)
    return std::nullopt;
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = pread(fd.get(), content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<size_t>(n);
  }
  return content;
}

TempFile& TempFile::operator=(TempFile&& other) noexcept {
  std::swap(fd, other.fd);
  name.swap(other.name);
  std::swap(directory, other.directory);
  return *this;
}

TempFile::~TempFile() {
  if (name.empty()) return;
  const int error = errno;
  unlinkat(directory, name.c_str(), 0);
  errno = error;
}

TempFile MakeTemp(int directory, Note& why) {
  TempFile temp;
  temp.directory = directory;
  // An unnamed file can be named only through /proc.
  if (!Fails("tmpfile") && access("/proc/self/fd", X_OK) == 0)
    temp.fd = Fd(openat(directory, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
  if (!temp.fd) {
    temp.name = RandomName() + ".tmp";
    temp.fd = Fd(Fails("temp") ? -1
                               : openat(directory, temp.name.c_str(),
                                        O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  }
  if (!temp.fd) {
    why = ErrnoNote(errno, "cannot create a temporary file", "cannot-create");
    temp.name.clear();
  } else {
    flock(temp.fd.get(), LOCK_EX | LOCK_NB);
  }
  return temp;
}

bool NameTemp(TempFile& temp, int to, const std::string& name, bool replace) {
  if (temp.name.empty()) {
    const std::string self = "/proc/self/fd/" + std::to_string(temp.fd.get());
    const std::string first = replace ? RandomName() + ".tmp" : name;
    if (linkat(AT_FDCWD, self.c_str(), replace ? temp.directory : to, first.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return false;
    if (!replace) return true;
    temp.name = first;
  }
  Point("named");
  if (!replace) {
    // rename would replace an existing file.
    if (linkat(temp.directory, temp.name.c_str(), to, name.c_str(), 0) != 0) return false;
    unlinkat(temp.directory, temp.name.c_str(), 0);
  } else if (renameat(temp.directory, temp.name.c_str(), to, name.c_str()) != 0) {
    return false;
  }
  temp.name.clear();
  return true;
}

bool ReplaceSmall(int directory, const std::string& name, std::span<const std::byte> content) {
  Note ignored;
  TempFile temp = MakeTemp(directory, ignored);
  Point("small-file");
  return temp.fd && WriteAt(temp.fd.get(), content, 0) && NameTemp(temp, directory, name, true);
}

std::vector<std::string> List(int directory) {
  std::vector<std::string> names;
  const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const stream = fd < 0 ? nullptr : fdopendir(fd);
  if (!stream) {
    if (fd >= 0) close(fd);
    return names;
  }
  while (const dirent* entry = readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

ModelFile ModelFile::Of(const struct stat& s) {
  constexpr int64_t kNano = 1'000'000'000;
  return {.device = s.st_dev,
          .inode = s.st_ino,
          .size = static_cast<uint64_t>(s.st_size),
          .modified_ns = s.st_mtim.tv_sec * kNano + s.st_mtim.tv_nsec,
          .changed_ns = s.st_ctim.tv_sec * kNano + s.st_ctim.tv_nsec};
}

std::optional<ModelFile> ModelFile::Of(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return Of(status);
}

bool FillRandom(void* to, size_t size) { return getrandom(to, size, 0) == static_cast<ssize_t>(size); }

std::string RandomName() {
  Digest random;
  if (!FillRandom(&random, sizeof random)) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    random = {static_cast<uint64_t>(now.tv_nsec) + static_cast<uint64_t>(now.tv_sec) * 1000000007u,
              static_cast<uint64_t>(getpid())};
  }
  return Hex(random);
}

bool IsStoreName(std::string_view name, std::string_view suffix) {
  constexpr size_t kDigits = 32;
  return name.size() == kDigits + suffix.size() && name.ends_with(suffix) &&
         name.substr(0, kDigits).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Fd Lock(int directory, const char* name, int milliseconds) {
  Fd fd(openat(directory, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd) return {};
  for (int waited = 0;; waited += 5) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if ((errno != EWOULDBLOCK && errno != EINTR) || waited >= milliseconds) return {};
    usleep(5000);
  }
}

}  // namespace fusebox::cache
