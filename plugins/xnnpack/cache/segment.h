// SPDX-License-Identifier: Apache-2.0
// Segment: an immutable mapped file with packed weights. Open checks superblock and index; FindDamage checks
// the blobs.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "plugins/xnnpack/cache/files.h"
#include "plugins/xnnpack/cache/segment_format.h"

namespace fusebox::cache {

class Segment {
 public:
  // Returns null and sets `why` if it fails. Code "missing": there is no such file; "corrupt": the file must
  // be quarantined. For other codes the file stays: another owner, not a regular file, a newer format, a
  // system error.
  static std::shared_ptr<Segment> Open(int directory, const std::string& name, Note& why);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const Record* Find(const Digest& identity, uint64_t fingerprint) const;
  std::span<const Record> records() const { return records_; }
  // The bytes of a record; always inside the file.
  std::span<const std::byte> Bytes(const Record& record) const;
  std::string_view RecipeOf(const Record& record) const;
  // Reads all blobs and reports the first whose digest does not match.
  std::optional<Note> FindDamage() const;

  const Superblock& superblock() const { return *reinterpret_cast<const Superblock*>(base_); }
  const std::string& name() const { return name_; }
  const ModelFile& file() const { return file_; }  // when opened

  // For the store.
  std::once_flag verified;
  std::atomic<bool> bad = false;
  std::atomic<bool> touched = false;

 private:
  Segment() = default;
  std::string CheckSuperblock() const;
  std::string CheckIndex();

  std::string name_;
  ModelFile file_;
  const std::byte* base_ = nullptr;
  size_t size_ = 0;
  std::span<const Record> records_;
  std::span<const uint32_t> note_begin_;
  std::string_view notes_;
};

}  // namespace fusebox::cache
