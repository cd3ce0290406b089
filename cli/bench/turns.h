// SPDX-License-Identifier: Apache-2.0
// Repeated calls, timed in microseconds: of one contestant, or of several in turns.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "host/base/status.h"

namespace fusebox::cli {

using Call = std::function<Status()>;

// Calls until there were `runs` calls and `min_seconds` passed, but no longer than `max_seconds`.
struct Limits {
  int runs = 50;
  double min_seconds = 1;
  double max_seconds = 150;
  double delay = 0;  // seconds before each call
};
Result<std::vector<double>> Repeat(const Call&, const Limits&);

// By contestant, then by round: the times of its calls in that round. Each round has a turn of every
// contestant, in an order that rotates, so that other load of the machine meets all of them. The first call
// of a turn is not counted. The limits hold for each contestant: its calls, and the time of its turns.
using Turns = std::vector<std::vector<double>>;
Result<std::vector<Turns>> TakeTurns(std::span<const Call>, const Limits&);

}  // namespace fusebox::cli
