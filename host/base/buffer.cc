// SPDX-License-Identifier: Apache-2.0
#include "host/base/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

namespace fusebox {
namespace {

struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

std::unexpected<Error> SystemError(const std::string& path, int error) {
  return Fail(error == ENOENT ? Code::kNotFound : Code::kIo, path + ": " + std::strerror(error));
}

std::shared_ptr<std::byte> Allocate(size_t size) {
  constexpr auto kAlign = std::align_val_t{kAlignment};
  FUSEBOX_CHECK(size <= SIZE_MAX - kOverread);
  auto* block = static_cast<std::byte*>(::operator new(size + kOverread, kAlign));
  std::memset(block + size, 0, kOverread);
  return {block, [](std::byte* p) { ::operator delete(p, kAlign); }};
}

}  // namespace

Buffer Buffer::Copy(std::span<const std::byte> bytes) {
  auto block = Allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(block.get(), bytes.data(), bytes.size());
  const std::byte* data = block.get();
  return Buffer(std::move(block), {data, bytes.size()});
}

Buffer Buffer::Make(size_t size, const std::function<void(std::span<std::byte>)>& fill) {
  auto block = Allocate(size);
  std::byte* data = block.get();
  std::memset(data, 0, size);
  if (fill) fill({data, size});
  return Buffer(std::move(block), {data, size});
}

Result<Buffer> MapFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return SystemError(path, errno);
  struct stat info;
  if (fstat(file.fd, &info) != 0) return SystemError(path, errno);
  if (S_ISDIR(info.st_mode)) return Invalid(path + ": is a folder, expected a file");
  if (!S_ISREG(info.st_mode)) return Invalid(path + ": is not a regular file");
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return Buffer::Copy({});
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // The file lies over the front of an anonymous mapping, whose last page stays readable behind it.
  const size_t length = (size + page - 1) / page * page + page;
  void* base = mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return SystemError(path, errno);
  std::shared_ptr<const void> owner(base, [length](const void* p) { munmap(const_cast<void*>(p), length); });
  if (mmap(base, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd, 0) == MAP_FAILED)
    return SystemError(path, errno);
  return Buffer(std::move(owner), {static_cast<const std::byte*>(base), size});
}

Result<std::string> ReadTextFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd < 0) return SystemError(path, errno);
  std::string text;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t n = read(file.fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, errno);
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace fusebox
