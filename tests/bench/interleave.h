// SPDX-License-Identifier: Apache-2.0
// Two ways to do the same, timed in turn on a machine that others use too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::bench {

// Medians of the calls of one turn of each, in ms.
struct Round {
  double a = 0, b = 0;
};

// Calls `a` some times, then `b`, and so on for about `seconds`. The first call of a turn is not counted;
// with several threads a turn begins after a pause in which the threads of the other stop spinning.
Result<std::vector<Round>> Interleave(const std::function<Status()>& a, const std::function<Status()>& b,
                                      double seconds, int threads);

// What `work` returned in a child process, or why it returned nothing: the child may crash or hang.
Result<std::string> InChild(const std::function<std::string()>& work, unsigned seconds);

}  // namespace fusebox::bench
