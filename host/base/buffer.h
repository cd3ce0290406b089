// SPDX-License-Identifier: Apache-2.0
// Buffer: shared, immutable bytes. A constant's data, a kept body's weights, a span into a mapped file.
//
// Copying a Buffer shares the bytes; two Buffers are the same constant when data() and size() are equal.
// Whoever made the bytes (heap, mapped file) lives as long as the last Buffer. 16 readable bytes follow every
// buffer made here; heap buffers are 64-byte aligned, mapped ones are only as aligned as the file has them.
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "host/base/status.h"

namespace fusebox {

// A mapped file, as it was when it was opened.
struct MappedFile {
  std::string path;  // absolute
  uint64_t device = 0, inode = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since 1970
  std::span<const std::byte> bytes;
};

inline constexpr size_t kAlignment = 64;  // of heap buffers, activations and scratch
inline constexpr size_t kOverread = 16;   // readable bytes after every buffer

class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  // Copies bytes to a new aligned heap block.
  static Buffer Copy(std::span<const std::byte> bytes);
  // A new heap block of that size, zeroed; fill receives it once, before it becomes immutable.
  static Buffer Make(size_t size, const std::function<void(std::span<std::byte>)>& fill);
  template <class T>
  static Buffer Of(std::span<const T> values) {
    return Copy(std::as_bytes(values));
  }

  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  // True when there is a payload at all; an empty tensor's constant has size() 0 and still an owner.
  explicit operator bool() const { return owner_ != nullptr; }
  bool SameAs(const Buffer& other) const { return data() == other.data() && size() == other.size(); }
  const void* owner() const { return owner_.get(); }  // equal for buffers in one file, or of one copy
  const MappedFile* file() const;  // that the bytes lie in; null: they lie elsewhere. As long as the bytes
  Buffer Slice(size_t offset, size_t size) const { return Buffer(owner_, bytes_.subspan(offset, size)); }

  // Where the bytes lie in a mapped file, their pages need not stay in memory: they are read again when
  // somebody looks. For whoever has read a large constant once and knows that others will not soon.
  void Release() const;
  void ReleaseFile() const;  // all pages of that file

  template <class T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(data()), size() / sizeof(T)};
  }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

// A file mapped read-only and privately, or copied where it is small. Errors name the path and strerror.
Result<Buffer> MapFile(const std::string& path);

// Writes bytes to `path` by way of a temporary file in the same directory and rename(2): the path holds
// either its old content or all of the new. The temporary is removed on failure. A symbolic link stays, and
// what it points to is written. What is no file (a device, a pipe) stays too: it is written to at Commit(),
// when all is there. A folder is an error.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();  // removes the temporary unless Commit() succeeded

  Status Append(std::span<const std::byte> bytes);
  // Where the bytes are until Commit().
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
