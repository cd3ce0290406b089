// SPDX-License-Identifier: Apache-2.0
// How far long work is, for whoever waits for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fusebox {

struct Progress {
  std::string what;  // "packing weights"
  uint64_t done = 0,
           total = 0;  // bytes, of all that has been announced so far; total grows with each new announcement
  bool ended = false;  // nothing is at work right now
};

// Called at every step, on the thread that works: it decides itself how often it shows something.
using ProgressListener = std::function<void(const Progress&)>;

}  // namespace fusebox
