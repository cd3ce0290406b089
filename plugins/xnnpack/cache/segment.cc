// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/segment.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <compare>
#include <cstring>
#include <tuple>

namespace fusebox::cache {

static_assert(std::endian::native == std::endian::little, "segments are little-endian");

std::shared_ptr<Segment> Segment::Open(int directory, const std::string& name, Note& why) {
  const Fd fd = OpenTrusted(directory, name, why);
  struct stat status;
  if (!fd || fstat(fd.get(), &status) != 0) return nullptr;
  std::shared_ptr<Segment> segment(new Segment);
  segment->name_ = name;
  segment->file_ = ModelFile::Of(status);
  if (segment->file_.size < sizeof(Superblock) + sizeof(uint32_t) + sizeof(Footer) ||
      segment->file_.size > SIZE_MAX / 2) {
    why = {"corrupt", name + ": has " + std::to_string(segment->file_.size) + " bytes, too few for a segment",
           0};
    return nullptr;
  }
  void* const base = mmap(nullptr, segment->file_.size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) {
    why = ErrnoNote(errno, name + ": cannot be mapped", "cannot-map");
    return nullptr;
  }
  segment->base_ = static_cast<const std::byte*>(base);
  segment->size_ = segment->file_.size;

  const Superblock& super = segment->superblock();
  if (std::memcmp(super.magic, kMagic, sizeof kMagic) == 0 && super.version > kFormatVersion) {
    why = {"newer-format",
           name + ": has format " + std::to_string(super.version) + ", expected " +
               std::to_string(kFormatVersion),
           0};
    return nullptr;
  }
  std::string problem = segment->CheckSuperblock();
  if (problem.empty()) problem = segment->CheckIndex();
  if (!problem.empty()) {
    why = {"corrupt", name + ": " + problem, 0};
    return nullptr;
  }
  return segment;
}

Segment::~Segment() {
  if (base_) munmap(const_cast<std::byte*>(base_), size_);
}

std::string Segment::CheckSuperblock() const {
  const Superblock& super = superblock();
  if (std::memcmp(super.magic, kMagic, sizeof kMagic) != 0) return "is not a segment";
  if (super.version != kFormatVersion) return "has an unknown format version";
  if (super.byte_order != kByteOrder) return "has another byte order";
  if (Hash({base_, offsetof(Superblock, self)}) != super.self)
    return "its superblock does not match its checksum";
  if (super.file_size != size_) return "should have " + std::to_string(super.file_size) + " bytes";
  if (super.writer[sizeof super.writer - 1] != '\0') return "its writer is not terminated";

  const uint64_t end = size_ - sizeof(Footer);
  Footer footer;
  std::memcpy(&footer, base_ + end, sizeof footer);
  if (std::memcmp(footer.magic, kMagic, sizeof kMagic) != 0 || footer.file_size != size_ ||
      footer.superblock != super.self)
    return "its footer does not match";
  if (super.index_offset < kFirstBlob || super.index_offset % kBlobAlignment != 0 || super.index_offset > end)
    return "its index is outside of the file";
  return "";
}

std::string Segment::CheckIndex() {
  const Superblock& super = superblock();
  const uint64_t room = size_ - sizeof(Footer) - super.index_offset;
  const uint64_t n = super.entry_count;
  if (room < sizeof(uint32_t) || n > (room - sizeof(uint32_t)) / (sizeof(Record) + sizeof(uint32_t)))
    return "its index is out of range";
  const uint64_t notes_at = n * sizeof(Record) + (n + 1) * sizeof(uint32_t);
  if (super.notes_size > room - notes_at) return "its notes are out of range";
  const std::byte* const index = base_ + super.index_offset;
  if (Hash({index, room}) != super.index_digest) return "its index does not match its checksum";

  records_ = {reinterpret_cast<const Record*>(index), n};
  note_begin_ = {reinterpret_cast<const uint32_t*>(index + n * sizeof(Record)), n + 1};
  notes_ = {reinterpret_cast<const char*>(index + notes_at), super.notes_size};
  // A checksum does not protect against a malicious writer.
  for (uint64_t i = 0; i < n; ++i) {
    const Record& r = records_[i];
    if (r.offset < kFirstBlob || r.offset % kBlobAlignment != 0 || r.offset > super.index_offset ||
        r.size == 0 || r.size > super.index_offset - r.offset)
      return "entry " + std::to_string(i) + " is outside of the blobs";
    if (i > 0 && std::tie(records_[i - 1].identity, records_[i - 1].fingerprint) >=
                     std::tie(r.identity, r.fingerprint))
      return "entry " + std::to_string(i) + " is not in order";
    if (note_begin_[i] > note_begin_[i + 1]) return "its notes are not in order";
  }
  if (note_begin_[0] != 0 || note_begin_[n] != notes_.size()) return "its notes are incomplete";
  return "";
}

const Record* Segment::Find(const Digest& identity, uint64_t fingerprint) const {
  const auto key = std::tie(identity, fingerprint);
  const auto at = std::lower_bound(
      records_.begin(), records_.end(), key,
      [](const Record& r, const auto& wanted) { return std::tie(r.identity, r.fingerprint) < wanted; });
  return at != records_.end() && std::tie(at->identity, at->fingerprint) == key ? &*at : nullptr;
}

std::span<const std::byte> Segment::Bytes(const Record& record) const {
  return {base_ + record.offset, record.size};
}

std::string_view Segment::RecipeOf(const Record& record) const {
  const size_t i = static_cast<size_t>(&record - records_.data());
  return notes_.substr(note_begin_[i], note_begin_[i + 1] - note_begin_[i]);
}

std::optional<Note> Segment::FindDamage() const {
  const Record* good = nullptr;  // entries with equal bytes share a blob, and are mostly adjacent
  for (const Record& r : records_) {
    if (good && good->offset == r.offset && good->size == r.size && good->packed == r.packed) continue;
    if (Hash(Bytes(r)) != r.packed)
      return Note{"corrupt",
                  name_ + ": bytes at " + std::to_string(r.offset) + " do not match their checksum", 0};
    good = &r;
  }
  return std::nullopt;
}

}  // namespace fusebox::cache
