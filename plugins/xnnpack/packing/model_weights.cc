// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/model_weights.h"

namespace fusebox::xnnpack {

std::shared_ptr<cache::Store> OpenStore(const std::string& path, cache::Mode mode) {
  return cache::Store::Open({.path = path, .mode = mode, .writer = "fusebox.xnnpack 1.0.0"});
}

cache::Digest ModelWeights::Of(const fbx_tensor& tensor) {
  if (in_memory()) return {reinterpret_cast<uintptr_t>(tensor.data), 0};
  const std::span bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
  const fbx_file* const file = tensor.file;
  if (file == nullptr || file->data == nullptr) return store_->HashContent(bytes);
  const auto offset = bytes.data() - static_cast<const std::byte*>(file->data);
  return MemoOf(*file).Of(static_cast<uint64_t>(offset), bytes);
}

void ModelWeights::Save() {
  const std::lock_guard lock(mutex_);
  for (const Known& k : memos_) k.memo->Save(cache::ModelFile::Of(k.path.c_str()));
}

cache::ModelMemo& ModelWeights::MemoOf(const fbx_file& file) {
  const std::lock_guard lock(mutex_);
  const cache::ModelFile state{.device = file.device,
                               .inode = file.inode,
                               .size = file.size,
                               .modified_ns = file.modified_ns,
                               .changed_ns = file.changed_ns};
  for (const Known& k : memos_)
    if (k.memo->file() == state) return *k.memo;
  memos_.push_back({std::string(to_string_view(file.path)), store_->Memo(state)});
  return *memos_.back().memo;
}

std::string ModelWeights::WhyNotKept() {
  const cache::Stats stats = store_->stats();
  if (in_memory() || stats.fallback_reason.empty() || told_.exchange(true)) return {};
  return stats.fallback_message;
}

}  // namespace fusebox::xnnpack
