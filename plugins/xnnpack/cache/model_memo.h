// SPDX-License-Identifier: Apache-2.0
// ModelMemo: digests of a model file's buffers, so that later starts need not read the weights.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "plugins/xnnpack/cache/files.h"

namespace fusebox::cache {

class Store;

// Digests of one state of a model file, from Store::Memo. Must not outlive the store. Any thread.
class ModelMemo {
 public:
  // `lasting`: loads digests of earlier starts and saves new ones.
  ModelMemo(Store& store, const ModelFile& file, bool lasting);
  ModelMemo(const ModelMemo&) = delete;
  // Digest of `bytes`, the file's content at `offset`. Computed once.
  Digest Of(uint64_t offset, std::span<const std::byte> bytes);
  // Writes new digests if the file is unchanged. `now`: its current state. A read-only store keeps them in
  // memory.
  void Save(const std::optional<ModelFile>& now);
  const ModelFile& file() const { return file_; }

 private:
  void Load();
  bool Write() const;

  Store& store_;
  const ModelFile file_;
  const bool lasting_;
  std::mutex mutex_;                                       // of the rest
  std::map<std::pair<uint64_t, uint64_t>, Digest> known_;  // by offset and size
  bool changed_ = false;
};

}  // namespace fusebox::cache
