// SPDX-License-Identifier: Apache-2.0
#include "host/base/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>

#include "host/base/pages.h"

namespace fusebox {
namespace {

// Copying a small file is cheaper than mapping it, and the copy survives changes of the file. Below the mmap
// threshold of allocators.
constexpr size_t kCopied = size_t{96} << 10;

struct Descriptor {
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  int fd;
};

// Unmaps on destruction.
struct Unmap {
  size_t length;
  MappedFile file;
  void operator()(const void* base) const { munmap(const_cast<void*>(base), length); }
};

int64_t Nanoseconds(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

std::string Absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).string();
}

std::unexpected<Error> SystemError(const std::string& path, int error) {
  return Fail(error == ENOENT ? Code::kNotFound : Code::kIo, path + ": " + std::strerror(error));
}

constexpr auto kAlign = std::align_val_t{kAlignment};

struct FreeBlock {
  void operator()(std::byte* block) const { ::operator delete(block, kAlign); }
};

std::shared_ptr<std::byte> Allocate(size_t size) {
  FUSEBOX_CHECK(size <= SIZE_MAX - kOverread);
  auto* block = static_cast<std::byte*>(::operator new(size + kOverread, kAlign));
  PreferHugePages(block, size);
  std::memset(block + size, 0, kOverread);
  return {block, FreeBlock()};
}

}  // namespace

Buffer Buffer::Borrow(std::span<const std::byte> bytes) {
  static constexpr std::byte kNone{};  // an owner, so that empty bytes are data too
  const void* const owner = bytes.data() == nullptr ? &kNone : bytes.data();
  return Buffer(std::shared_ptr<const void>(owner, [](const void*) {}), bytes);
}

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

namespace {

Result<Buffer> CopyFile(const std::string& path, int fd, size_t size) {
  auto block = Allocate(size);
  for (size_t done = 0; done < size;) {
    const ssize_t n = read(fd, block.get() + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError(path, errno);
    if (n == 0) return Fail(Code::kIo, path + ": was truncated while reading");
    done += static_cast<size_t>(n);
  }
  const std::byte* const data = block.get();
  return Buffer(std::move(block), {data, size});
}

// A checkout without Git LFS leaves such a file.
bool IsLfsPointer(const Buffer& file) {
  constexpr std::string_view kBegin = "version https://git-lfs.github.com/spec/";
  constexpr size_t kLongest = 1024;
  return file.size() <= kLongest && file.size() > kBegin.size() &&
         std::memcmp(file.data(), kBegin.data(), kBegin.size()) == 0;
}

std::string WhyNoFolder(const std::string& path) {
  if (access((path + "/saved_model.pb").c_str(), F_OK) != 0) return "is a folder, expected a file";
  return "is a SavedModel; convert it first: fusebox convert " + path + " -o MODEL.tflite";
}

}  // namespace

Result<Buffer> MapFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe does not wait for a writer. Pipes are rejected below.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.fd < 0) return SystemError(path, errno);
  struct stat info;
  if (fstat(file.fd, &info) != 0) return SystemError(path, errno);
  if (S_ISDIR(info.st_mode)) return Invalid(path + ": " + WhyNoFolder(path));
  if (!S_ISREG(info.st_mode)) return Invalid(path + ": is not a regular file");
  const auto size = static_cast<size_t>(info.st_size);
  if (size <= kCopied) {
    FUSEBOX_ASSIGN(Buffer small, CopyFile(path, file.fd, size));
    if (IsLfsPointer(small))
      return Invalid(path + ": is a Git LFS pointer; fetch the file with `git lfs pull`");
    return small;
  }
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (size + page - 1) / page * page;
  const bool reads_on = pages - size >= kOverread;  // the last page of a file ends in zeros
  // Otherwise the file is mapped over an anonymous mapping, whose last page stays readable.
  const size_t length = reads_on ? pages : pages + page;
  void* const base = reads_on ? mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.fd, 0)
                              : mmap(nullptr, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return SystemError(path, errno);
  const std::span bytes(static_cast<const std::byte*>(base), size);
  std::shared_ptr<const void> owner(base, Unmap{length,
                                                {.path = Absolute(path),
                                                 .device = info.st_dev,
                                                 .inode = info.st_ino,
                                                 .modified_ns = Nanoseconds(info.st_mtim),
                                                 .changed_ns = Nanoseconds(info.st_ctim),
                                                 .bytes = bytes}});
  if (!reads_on && mmap(base, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.fd, 0) == MAP_FAILED)
    return SystemError(path, errno);
  return Buffer(std::move(owner), bytes);
}

const MappedFile* Buffer::file() const {
  const auto* unmap = std::get_deleter<Unmap>(owner_);
  return unmap == nullptr ? nullptr : &unmap->file;
}

bool Buffer::created_here() const {
  return file() != nullptr || std::get_deleter<FreeBlock>(owner_) != nullptr;
}

namespace {

void ReleasePages(std::span<const std::byte> bytes) {
  constexpr size_t kWorthACall = size_t{256} << 10;
  if (bytes.size() < kWorthACall) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data()) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size();
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // on failure the pages stay
}

}  // namespace

void Buffer::Release() const {
  if (file() != nullptr) ReleasePages(bytes_);
}

void Buffer::ReleaseFile() const {
  if (file() != nullptr) ReleasePages(file()->bytes);
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
