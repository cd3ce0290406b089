// SPDX-License-Identifier: Apache-2.0
// How far long work is, for whoever waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fusebox {

struct Progress {
  enum class Unit { kBytes, kSteps };
  std::string what;  // "packing weights", "pass fold"
  // Of all that has been announced so far; total grows with each new announcement.
  uint64_t done = 0, total = 0;
  bool ended = false;  // nothing is at work right now
  Unit unit = Unit::kBytes;
};

// Called at every step, on the thread that works: it decides itself how often it shows something.
using ProgressListener = std::function<void(const Progress&)>;

}  // namespace fusebox
