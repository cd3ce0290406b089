// SPDX-License-Identifier: Apache-2.0
// Two ways of doing the same, timed in turn on a machine that others use too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::bench {

double Median(std::vector<double> values);

// What calls took, in ms. `best` is the fastest twentieth: what the others on the machine left alone.
struct Times {
  double median = 0, best = 0;
};
struct Pair {
  Times a, b;
};

// Calls `a` some times, then `b`, and so on for about `seconds`. The first call of a turn is not counted; with several threads a
// turn begins after a pause in which the threads of the other stop spinning.
Result<Pair> Interleave(const std::function<Status()>& a, const std::function<Status()>& b, double seconds,
                        int threads);

// What `work` returned in a child process, or why it returned nothing: the child may crash or hang.
Result<std::string> InChild(const std::function<std::string()>& work, unsigned seconds);

}  // namespace fusebox::bench
