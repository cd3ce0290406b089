// SPDX-License-Identifier: Apache-2.0
#include "host/opening.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace fusebox {

Opening::Opening(std::shared_ptr<std::atomic<bool>> cancel, int64_t limit_ms)
    : cancel_(std::move(cancel)), limit_(limit_ms) {
  if (limit_ms <= 0) return;
  if (cancel_ == nullptr) cancel_ = std::make_shared<std::atomic<bool>>(false);
  timer_ = std::jthread([this](const std::stop_token& stop) { Wait(stop); });
}

void Opening::Wait(const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  const auto limit = std::min<std::chrono::milliseconds>(limit_, std::chrono::hours(1 << 16));
  if (wake.wait_for(lock, stop, limit, [&] { return stop.stop_requested(); })) return;
  expired_ = true;
  *cancel_ = true;
}

}  // namespace fusebox
