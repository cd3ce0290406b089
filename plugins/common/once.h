// SPDX-License-Identifier: Apache-2.0
// Once: runs a function at the first call. Unlike std::call_once, the first call makes no system call where
// nobody waits, which matters with one object per layer. After an exception the next call tries again. Any
// thread.
#pragma once

#include <atomic>
#include <mutex>

namespace fusebox::common {

class Once {
 public:
  template <class F>
  void operator()(const F& f) {
    if (done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    f();
    done_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> done_ = false;
};

}  // namespace fusebox::common
