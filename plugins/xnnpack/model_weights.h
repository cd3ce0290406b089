// SPDX-License-Identifier: Apache-2.0
// The constants of one model, and the store that has what is packed of them. Any thread.
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

// The store of a `weight_cache_path`: one object per process for equal paths.
std::shared_ptr<cache::Store> OpenStore(const std::string& path, cache::Mode mode = cache::Mode::kReadWrite);

class ModelWeights {
 public:
  explicit ModelWeights(std::shared_ptr<cache::Store> store) : store_(std::move(store)) {}
  cache::Store& store() const { return *store_; }
  // Packed weights are for the sessions of this model alone, and constants are told apart by their address, which costs nothing: they
  // live as long as the model does. Else they are told apart by their contents.
  bool in_memory() const { return store_->mode() == cache::Mode::kPrivate; }

  // What the tensor, which has its data, is told apart by.
  cache::Digest Of(const fbx_tensor& tensor);
  // What is new of the model's file goes to disk.
  void Save();
  // Why what is packed is not kept, as far as is known by now; told once. Empty: it is kept, or nobody asked for that.
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
