// SPDX-License-Identifier: Apache-2.0
// Buffer: shared, immutable bytes: constants, kept weights of a body, a span of a mapped file.
//
// A copy shares the bytes. Two Buffers are the same constant if data() and size() are equal. The owner of the
// bytes (heap, mapped file) lives as long as the last Buffer. 16 readable bytes follow every buffer created
// here. Heap buffers are 64-byte aligned; mapped ones have the alignment of the file. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox {

// A mapped file, with the metadata from when it was opened.
struct MappedFile {
  std::string path;  // absolute
  uint64_t device = 0;
  uint64_t inode = 0;
  // Counted since 1970.
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  std::span<const std::byte> bytes;
};

inline constexpr size_t kAlignment = 64;  // of heap buffers, activations and scratch
inline constexpr size_t kOverread = 16;   // readable bytes after every buffer

class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  // Bytes of the caller, who keeps them unchanged as long as copies and slices exist.
  static Buffer Borrow(std::span<const std::byte> bytes);
  // Copies bytes to a new, aligned heap block.
  static Buffer Copy(std::span<const std::byte> bytes);
  // A new, zeroed heap block. `fill` writes it once, before it becomes immutable.
  static Buffer Make(size_t size, const std::function<void(std::span<std::byte>)>& fill);
  template <class T>
  static Buffer Of(std::span<const T> values) {
    return Copy(std::as_bytes(values));
  }

  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  // True if there is data. An empty tensor's constant has size() 0 and an owner.
  explicit operator bool() const { return owner_ != nullptr; }
  bool SameAs(const Buffer& other) const { return data() == other.data() && size() == other.size(); }
  const void* owner() const { return owner_.get(); }  // equal for buffers in one file or of one copy
  const MappedFile* file() const;  // of the bytes; null: not mapped. Lives as long as the bytes
  bool created_here() const;       // 16 readable bytes follow
  Buffer Slice(size_t offset, size_t size) const { return Buffer(owner_, bytes_.subspan(offset, size)); }

  // Drops the pages of mapped bytes from memory; the next access reads them again. For large constants that
  // are rarely read.
  void Release() const;
  void ReleaseFile() const;  // all pages of the file

  template <class T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(data()), size() / sizeof(T)};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

// Maps a file read-only and private, or copies it if it is small. Errors name the path and strerror.
Result<Buffer> MapFile(const std::string& path);

// Writes bytes to a temporary file in the directory of `path` and renames it: `path` holds either its old
// content or all of the new. The temporary is removed on failure. A symbolic link stays; its target is
// written. Devices and pipes are written at Commit(). A directory is an error.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the temporary unless Commit() succeeded

  Status Append(std::span<const std::byte> bytes);
  // Path of the bytes until Commit().
  const std::string& temporary() const { return temporary_; }
  Status Commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  std::string path_, temporary_;
  int fd_ = -1;
};

Status WriteFile(const std::string& path, std::span<const std::byte> bytes);
Result<std::string> ReadTextFile(const std::string& path);

}  // namespace fusebox
