// SPDX-License-Identifier: Apache-2.0
// Format of a segment (*.fbpk), little-endian. docs/weight-cache.md describes identities and notes.
//
//   0            Superblock, 4096 bytes
//   4096         blobs, each at a multiple of 128 (of 4096 from 1 MiB on); gaps are undefined
//   index_offset Record[entry_count], ascending by (identity, fingerprint)
//                uint32 note_begin[entry_count + 1], then the notes' text
//                zeros up to a multiple of 8, Footer; the file ends
#pragma once

#include <cstdint>
#include <type_traits>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::cache {

inline constexpr char kMagic[8] = {'F', 'B', 'X', 'P', 'A', 'C', 'K', '\n'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kByteOrder = 0x01020304;
inline constexpr uint64_t kFirstBlob = 4096;
inline constexpr uint64_t kBlobAlignment = 128;
inline constexpr uint64_t kBigBlob = 1 << 20;
inline constexpr uint64_t kBigBlobAlignment = 4096;
inline constexpr size_t kMaxNote = 4096;

struct Superblock {
  char magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t file_size;
  uint64_t index_offset;
  uint64_t entry_count;
  uint64_t notes_size;  // of the text alone
  Digest index_digest;  // XXH3-128 of [index_offset, file_size - sizeof(Footer))
  Digest secret;        // seed of the content digests, low half
  Digest id;            // of the contents: the file name in a directory store
  uint64_t created_s;   // seconds since 1970
  uint64_t generation;  // of a single-file store: number of rewrites
  char writer[64];      // ends in NUL
  char reserved[3904];  // zeros
  Digest self;          // XXH3-128 of all bytes before
};
static_assert(sizeof(Superblock) == kFirstBlob && std::is_trivially_copyable_v<Superblock>);

struct Record {
  Digest identity;
  Digest packed;  // XXH3-128 of the blob
  uint64_t fingerprint;
  uint64_t offset;
  uint64_t size;
  uint32_t seed;
  uint16_t family;
  uint16_t flags;  // zero
};
static_assert(sizeof(Record) == 64 && std::is_trivially_copyable_v<Record>);

struct Footer {
  char magic[8];
  uint64_t file_size;
  Digest superblock;  // Superblock::self
};
static_assert(sizeof(Footer) == 32);

inline constexpr uint64_t AlignUp(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}
inline constexpr uint64_t AlignmentOf(uint64_t size) {
  return size >= kBigBlob ? kBigBlobAlignment : kBlobAlignment;
}

}  // namespace fusebox::cache
