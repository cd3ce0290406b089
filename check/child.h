// SPDX-License-Identifier: Apache-2.0
// A child process that runs one function with limits, in an empty folder.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "host/base/status.h"

namespace fusebox::check {

struct Limits {
  double seconds = 20;         // on the clock, and of CPU time
  size_t memory = 2ULL << 30;  // bytes of address space that the child may add; no limit with sanitizers
};

struct Ended {
  bool finished = false;  // the function returned
  std::string result;     // what it returned
  std::string why;        // not finished: "killed by signal 11 (Segmentation fault) in invoke of acme.op"
  bool timed_out = false;
  std::string out;    // what it printed to stdout; shortened
  std::string files;  // first file that it left in its folder, which was also HOME and TMPDIR; empty: none
};

// Forks, runs `work` in the child, and waits. Error: fork or a file failed.
Result<Ended> RunInChild(const std::function<std::string()>& work, const Limits& limits);

// Mode of floating-point arithmetic of this thread: rounding, traps, and whether denormals are flushed to
// zero.
std::array<uint64_t, 2> FloatMode();

// In the child: names what runs now, for the message about its end. Async-signal-safe; any thread.
void SetPlace(const char* callback, std::string_view subject);

}  // namespace fusebox::check
