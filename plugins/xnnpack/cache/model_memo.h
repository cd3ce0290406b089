// SPDX-License-Identifier: Apache-2.0
// Which digests the buffers of a model file have, remembered between starts, so that a warm start reads no weights.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "plugins/xnnpack/cache/digest.h"

namespace fusebox::cache {

// A state of a file. An edit in place changes ctime even where size and mtime are kept.
struct ModelFile {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;
  friend bool operator==(const ModelFile&, const ModelFile&) = default;

  static std::optional<ModelFile> Of(int fd);
  static std::optional<ModelFile> Of(const char* path);  // follows symbolic links
};

class ModelMemo {
 public:
  virtual ~ModelMemo() = default;
  // Digest of `bytes`, which are the file's content from `offset` on. Remembered, or computed and remembered.
  virtual Content Of(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Writes what is new, if the file is still what it was and is not so young that an edit could have kept its times.
  // `now` is the file's present state. Called after the last Of; a store that is not written keeps it in memory.
  virtual void Save(const std::optional<ModelFile>& now) = 0;
};

}  // namespace fusebox::cache
