// SPDX-License-Identifier: Apache-2.0
// Memory to pack into: pages of a file, or private memory. Grows piece by piece; in a file the pieces are
// contiguous. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "plugins/xnnpack/cache/files.h"

namespace fusebox::cache {

class Arena {
 public:
  // One mapping; unmapped with its last blob.
  struct Piece {
    std::byte* base = nullptr;
    size_t length = 0;
    uint64_t file_offset = 0;  // of base
    ~Piece();
  };

  struct Region {
    std::byte* at = nullptr;
    size_t capacity = 0;
    uint64_t offset = 0;  // in the file
    std::shared_ptr<Piece> piece;
  };

  // `fd` is borrowed; -1: private memory. The first region of a file follows the superblock. A file grows
  // only if tuning.min_free_bytes stay free on its disk.
  explicit Arena(int fd);

  std::optional<Region> Reserve(size_t size, Note& why);
  // Releases the region if it is the last.
  void Rewind(const Region& region);
  // Shrinks the last region; the rest is reusable.
  void Trim(const Region& region, size_t size);
  // Makes all pieces read-only.
  void Seal();

  uint64_t used() const { return used_; }

 private:
  bool in_file() const { return fd_ >= 0; }
  bool Grow(uint64_t end, Note& why);
  bool Extend(uint64_t end, Note& why);
  bool Map(uint64_t from, uint64_t end, Note& why);
  void Fill(uint64_t end);
  void Populate(const Region& region);

  int fd_;
  uint64_t used_, allocated_;
  uint64_t filled_ = 0;  // the file's pages below it exist
  std::shared_ptr<Piece> current_;
  std::vector<std::weak_ptr<Piece>> pieces_;
};

}  // namespace fusebox::cache
