// SPDX-License-Identifier: Apache-2.0
// ModelWeights: constants of one model, and the store for their packed weights. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fusebox/base.hpp>

#include "plugins/xnnpack/cache/model_memo.h"
#include "plugins/xnnpack/cache/store.h"

namespace fusebox::xnnpack {

using namespace sdk;

// The store of a `weight_cache_path`: one object per process for equal paths.
std::shared_ptr<cache::Store> OpenStore(const std::string& path, cache::Mode mode = cache::Mode::kReadWrite);

class ModelWeights {
 public:
  explicit ModelWeights(std::shared_ptr<cache::Store> store) : store_(std::move(store)) {}
  cache::Store& store() const { return *store_; }
  // Without weight_cache_path, the sessions of this model share packed weights in memory. Constants are then
  // identified by address, which costs nothing: they live as long as the model. Otherwise by content.
  bool in_memory() const { return store_->mode() == cache::Mode::kPrivate; }

  // Identifies the tensor's data, which must not be NULL.
  cache::Digest Of(const fbx_tensor& tensor);
  // Writes new digests of the model's file to disk.
  void Save();
  // Returns once why packed weights are not stored, as far as known, or an empty string if they are, or need
  // not be.
  std::string WhyNotKept();

 private:
  struct Known {
    std::string path;
    std::shared_ptr<cache::ModelMemo> memo;
  };
  cache::ModelMemo& MemoOf(const fbx_file& file);

  const std::shared_ptr<cache::Store> store_;
  std::mutex mutex_;  // of memos_
  std::vector<Known> memos_;
  std::atomic<bool> told_ = false;
};

}  // namespace fusebox::xnnpack
