// SPDX-License-Identifier: Apache-2.0
// Progress on stderr: on a terminal a bar with the remaining time, drawn at most ten times a second; else a
// line at the start, then one per second. Prints nothing if there is no work.
#pragma once

#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "host/base/progress.h"

namespace fusebox::cli {

class ProgressBar {
 public:
  // Prints nothing for work that ends within `patience`.
  explicit ProgressBar(std::chrono::milliseconds patience = {});
  ProgressBar(const ProgressBar&) = delete;
  ~ProgressBar() { Clear(); }
  // The listener must not outlive this object.
  ProgressListener listener() {
    return [this](const Progress& p) { Update(p); };
  }
  // Sets the expected total; otherwise the sum of announcements is used.
  void Expect(uint64_t bytes) { expected_ = bytes; }
  // Removes the bar and prints the packed bytes and the time.
  void Finish();
  uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Update(const Progress&);
  void Draw(const std::string& line);
  void Clear();

  const bool terminal_;
  const std::chrono::milliseconds patience_;
  bool drawn_ = false;
  bool begun_ = false;
  uint64_t expected_ = 0;
  uint64_t done_ = 0;
  double left_ = std::numeric_limits<double>::infinity();  // seconds, as last shown: it never rises
  Clock::time_point made_ = Clock::now();
  Clock::time_point begin_;
  Clock::time_point shown_;
};

// Seconds left if the rest takes as long as what is done; nothing while that is a guess.
std::optional<double> SecondsLeft(uint64_t done, uint64_t total, std::chrono::duration<double> taken);
// "about 12 s left"
std::string TimeLeft(double seconds);

// "12.3 MB"; a megabyte has 1000000 bytes.
std::string BytesText(uint64_t bytes);

}  // namespace fusebox::cli
