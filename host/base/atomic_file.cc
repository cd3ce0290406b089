// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "host/base/buffer.h"

namespace fusebox {
namespace {

std::unexpected<Error> WriteError(const std::string& path, int error) {
  return Fail(error == ENOENT ? Code::kNotFound : Code::kIo,
              path + ": cannot be written: " + std::strerror(error) +
                  (error == EFBIG ? "; raise the limit of ulimit -f" : ""));
}

// False for a device or a pipe.
bool SupportsRename(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode);
}

Status CopyTo(const std::string& path, const std::string& temporary) {
  FUSEBOX_ASSIGN(const Buffer all, MapFile(temporary));
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return WriteError(path, errno);
  size_t done = 0;
  int failed = 0;
  while (done < all.size() && failed == 0) {
    const ssize_t n = write(fd, all.data() + done, all.size() - done);
    if (n >= 0) done += static_cast<size_t>(n);
    else if (errno != EINTR) failed = errno;
  }
  if (close(fd) != 0 && failed == 0) failed = errno;
  if (failed != 0) return WriteError(path, failed);
  return {};
}

// The end of a chain of symbolic links; the file may not exist.
std::string EndOfLinks(std::filesystem::path path) {
  constexpr int kMost = 40;  // limit of Linux
  std::error_code error;
  for (int i = 0; i < kMost && std::filesystem::is_symlink(path, error); ++i) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& wanted) {
  static std::atomic<unsigned> counter{0};
  std::error_code error;
  if (std::filesystem::is_directory(wanted, error)) return WriteError(wanted, EISDIR);
  const bool renames = SupportsRename(wanted);
  const std::string path = renames ? EndOfLinks(wanted) : wanted;
  const std::string stem =
      renames ? path : (std::filesystem::temp_directory_path(error) / "fusebox-output").string();
  AtomicFile file(path, {}, -1);  // nothing can fail after the file exists
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary = stem + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
    // Unlike mkstemp, open gives the file the permissions of the umask, like any new file.
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
      file.temporary_ = std::move(temporary);
      file.fd_ = fd;
      return file;
    }
    if (errno != EEXIST) return WriteError(path, errno);
  }
  return WriteError(path, EEXIST);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {
  other.temporary_.clear();
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status AtomicFile::Append(std::span<const std::byte> bytes) {
  FUSEBOX_CHECK(fd_ >= 0);
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return WriteError(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

Status AtomicFile::Commit() {
  FUSEBOX_CHECK(fd_ >= 0);
  // close reports errors of delayed writes (quota, network).
  if (close(std::exchange(fd_, -1)) != 0) return WriteError(path_, errno);
  if (!SupportsRename(path_)) return CopyTo(path_, temporary_);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return WriteError(path_, errno);
  temporary_.clear();
  return {};
}

Status WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  FUSEBOX_ASSIGN(AtomicFile file, AtomicFile::Create(path));
  FUSEBOX_TRY(file.Append(bytes));
  return file.Commit();
}

}  // namespace fusebox
