// SPDX-License-Identifier: Apache-2.0
// How far long work is, on stderr: a bar where that is a terminal, drawn at most ten times a second; else a
// line when it begins, and then one a second. Nothing at all where there is nothing to do.
#pragma once

#include <chrono>
#include <string>

#include "host/base/progress.h"

namespace fusebox::cli {

class ProgressBar {
 public:
  // Says nothing about work that ends within `patience`.
  explicit ProgressBar(std::chrono::milliseconds patience = {});
  ProgressBar(const ProgressBar&) = delete;
  ~ProgressBar() { Clear(); }
  // For a session that does not outlive this.
  ProgressListener listener() {
    return [this](const Progress& p) { Update(p); };
  }
  // What will be packed in all, where somebody knows: else the sum of what has been announced.
  void Expect(uint64_t bytes) { expected_ = bytes; }
  // Takes the bar away and says what was packed in what time.
  void Finish();
  uint64_t done() const { return done_; }

 private:
  using Clock = std::chrono::steady_clock;
  void Update(const Progress&);
  void Draw(const std::string& line);
  void Clear();

  const bool terminal_;
  const std::chrono::milliseconds patience_;
  bool drawn_ = false, begun_ = false;
  uint64_t expected_ = 0, done_ = 0;
  Clock::time_point made_ = Clock::now(), begin_, shown_;
};

// "12.3 MB"; a megabyte has 1000000 bytes.
std::string BytesText(uint64_t bytes);

}  // namespace fusebox::cli
