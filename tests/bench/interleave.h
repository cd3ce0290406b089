// SPDX-License-Identifier: Apache-2.0
// Times two implementations in alternating rounds, for machines with other load.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::bench {

// Medians of one round, in ms.
struct Round {
  double a = 0, b = 0;
};

// Alternates series of calls of `a` and `b` for about `seconds`. The first call of a series is not counted.
// With several threads, a series starts when no other thread of the process runs.
Result<std::vector<Round>> Interleave(const std::function<Status()>& a, const std::function<Status()>& b,
                                      double seconds, int threads);

// Returns the result of `work` in a child process, or an error if the child crashes or hangs.
Result<std::string> InChild(const std::function<std::string()>& work, unsigned seconds);

}  // namespace fusebox::bench
