// SPDX-License-Identifier: Apache-2.0
// Opening: work on a model that another thread, or a time limit, may end.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string_view>

#include "host/base/cancel.h"
#include "host/base/status.h"

namespace fusebox {

class Opening {
 public:
  // `cancel`: set by any thread; null: never. limit_ms 0: no limit.
  Opening(const std::atomic<bool>* cancel, int64_t limit_ms)
      : limit_(limit_ms), limits_{cancel, Limits::After(limit_)}, scope_(limits_) {}
  // Names the limit if it ended the work. `advice` is appended.
  template <class T>
  Result<T> Explain(Result<T> result, std::string_view advice = {}) const {
    if (result || result.error().code != Code::kCancelled || !limits_.Expired()) return result;
    result.error().message +=
        fmt::format(": it took longer than its time limit of {} ms{}", limit_.count(), advice);
    return result;
  }

 private:
  const std::chrono::milliseconds limit_;
  const Limits limits_;
  const CancelScope scope_;
};

}  // namespace fusebox
