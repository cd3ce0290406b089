// SPDX-License-Identifier: Apache-2.0
// Progress: state of a long operation, for listeners.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fusebox {

struct Progress {
  enum class Unit { kBytes, kSteps };
  std::string what;  // "packing weights", "pass fold"
  // Amounts of all work announced so far; `total` grows with each announcement.
  uint64_t done = 0;
  uint64_t total = 0;
  bool ended = false;  // nothing is running
  Unit unit = Unit::kBytes;
};

// Called at every step, on the working thread. The listener limits its own output rate.
using ProgressListener = std::function<void(const Progress&)>;

}  // namespace fusebox
