// SPDX-License-Identifier: Apache-2.0
// Constants by their contents: digests of the tensors of models, remembered per file where they lie in one.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fusebox/base.hpp>

#include "plugins/xnnpack/cache/weight_store.h"

namespace fusebox::xnnpack {

// Any thread.
class TensorDigests {
 public:
  explicit TensorDigests(std::shared_ptr<cache::Store> store) : store_(std::move(store)) {}
  // The tensor has its data.
  cache::Content Of(const fbx_tensor& tensor);
  // What is new goes to disk.
  void Save();

 private:
  struct Known {
    cache::ModelFile file;
    std::string path;
    std::shared_ptr<cache::ModelMemo> memo;
  };
  std::shared_ptr<cache::ModelMemo> MemoOf(const fbx_file& file);

  const std::shared_ptr<cache::Store> store_;
  std::mutex mutex_;
  std::vector<Known> memos_;
};

}  // namespace fusebox::xnnpack
