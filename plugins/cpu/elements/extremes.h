// SPDX-License-Identifier: Apache-2.0
// Maxima and minima, for all ops that compute them.
#pragma once

#include <limits>

#include "plugins/cpu/elements/broadcast.h"

namespace fusebox::cpu {

// NaN if one operand is NaN; b if they are equal. Both comparisons are made, so that loops have no branch.
template <class T>
FUSEBOX_INLINE inline T LargerOf(T a, T b) {
  return (a != a) | (a > b) ? a : b;
}
template <class T>
FUSEBOX_INLINE inline T SmallerOf(T a, T b) {
  return (a != a) | (a < b) ? a : b;
}

// The maximum and the minimum of no elements.
template <class T>
constexpr T kLowest = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::lowest();
template <class T>
constexpr T kHighest =
    std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();

// Result 0 is the larger or the smaller element of operands 0 and 1, which have the same integer type. The
// loops exist once.
void RunIntegerExtremes(const Node& n, const BroadcastPlan& plan, bool larger);

}  // namespace fusebox::cpu
