// SPDX-License-Identifier: Apache-2.0
// Patience: when loops run on their caller alone, because another process has the core of a thread that they
// would wait for. One thread at a time.
#pragma once

#include <algorithm>
#include <chrono>

namespace fusebox {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Patience(int rest) : rest_(rest) {}

  bool rests(Clock::time_point now) const { return now < rest_until_; }
  // A caller whose own chunks took `own` waited for chunks of others from `ran` to `now`. A thread that takes
  // longer than kLongest, and twice the caller's chunks, does not run. Then callers run alone for `rest`
  // times as long as they waited.
  void Waited(Clock::time_point ran, Clock::time_point now, Clock::duration own) {
    const auto waited = now - ran;
    if (waited > kLongest + 2 * own) rest_until_ = now + std::min<Clock::duration>(rest_ * waited, kMostRest);
  }

 private:
  static constexpr auto kLongest = std::chrono::microseconds(50);
  static constexpr auto kMostRest = std::chrono::seconds(1);
  const int rest_;
  Clock::time_point rest_until_{};
};

}  // namespace fusebox
