// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "host/base/buffer.h"

namespace fusebox {
namespace {

std::unexpected<Error> WriteError(const std::string& path, int error) {
  return Fail(error == ENOENT ? Code::kNotFound : Code::kIo,
              path + ": cannot be written: " + std::strerror(error));
}

}  // namespace

Result<AtomicFile> AtomicFile::Create(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string temporary = path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
    // Not mkstemp: the file gets the rights that the umask grants, as any other new file.
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(path, std::move(temporary), fd);
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
  // close reports what a delayed write could not do (quota, network).
  if (close(std::exchange(fd_, -1)) != 0) return WriteError(path_, errno);
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
