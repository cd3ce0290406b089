// SPDX-License-Identifier: Apache-2.0
// Opening: work on a model that another thread, or a time limit, may end.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>

#include "host/base/status.h"

namespace fusebox {

class Opening {
 public:
  // `cancel`: set by any thread, and at the limit; null: a new flag. limit_ms 0: no limit.
  Opening(std::shared_ptr<std::atomic<bool>> cancel, int64_t limit_ms);
  // Names the limit if it ended the work. `advice` is appended.
  template <class T>
  Result<T> Explain(Result<T> result, std::string_view advice = {}) const {
    if (result || result.error().code != Code::kCancelled || !expired_) return result;
    result.error().message +=
        fmt::format(": it took longer than its time limit of {} ms{}", limit_.count(), advice);
    return result;
  }
  const std::shared_ptr<std::atomic<bool>>& flag() const { return cancel_; }

 private:
  void Wait(const std::stop_token& stop);

  std::shared_ptr<std::atomic<bool>> cancel_;
  const std::chrono::milliseconds limit_;
  std::atomic<bool> expired_ = false;
  std::jthread timer_;
};

}  // namespace fusebox
