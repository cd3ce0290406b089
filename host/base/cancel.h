// SPDX-License-Identifier: Apache-2.0
// Cancellation of work outside a session: opening a model, importing it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "host/base/status.h"

namespace fusebox {

// Ends of work: a flag that any thread sets, and a time. Code that polls both needs no thread that waits.
struct Limits {
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();
  static constexpr std::chrono::hours kLongest{1 << 16};

  const std::atomic<bool>* flag = nullptr;  // null: none
  Clock::time_point end = kNever;

  // The end of work that begins now. 0: never.
  static Clock::time_point After(std::chrono::milliseconds limit) {
    return limit.count() > 0 ? Clock::now() + std::min<std::chrono::milliseconds>(limit, kLongest) : kNever;
  }
  bool Expired() const { return end != kNever && Clock::now() >= end; }
  bool Reached() const { return (flag != nullptr && flag->load(std::memory_order_relaxed)) || Expired(); }
};

// Work of this thread ends early at the limits of this scope, and of scopes around it.
class CancelScope {
 public:
  explicit CancelScope(Limits);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  static const Limits& Current();

 private:
  const Limits before_;
};

// Error: Code::kCancelled. For each step of work whose amount a file determines.
Status CheckCancelled();

}  // namespace fusebox
