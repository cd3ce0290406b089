// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/tensor_digests.h"

namespace fusebox::xnnpack {

cache::Content TensorDigests::Of(const fbx_tensor& tensor) {
  const std::span bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
  const fbx_file* const file = tensor.file;
  if (file == nullptr || file->data == nullptr) return store_->HashContent(bytes);
  const auto offset = bytes.data() - static_cast<const std::byte*>(file->data);
  return MemoOf(*file)->Of(static_cast<uint64_t>(offset), bytes);
}

void TensorDigests::Save() {
  const std::lock_guard lock(mutex_);
  for (const Known& k : memos_) k.memo->Save(cache::ModelFile::Of(k.path.c_str()));
}

std::shared_ptr<cache::ModelMemo> TensorDigests::MemoOf(const fbx_file& file) {
  const std::lock_guard lock(mutex_);
  const cache::ModelFile state{file.device, file.inode, file.size, file.modified_ns, file.changed_ns};
  for (const Known& k : memos_)
    if (k.file == state) return k.memo;
  memos_.push_back({state, std::string(view(file.path)), store_->Memo(state)});
  return memos_.back().memo;
}

}  // namespace fusebox::xnnpack
