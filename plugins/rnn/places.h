// SPDX-License-Identifier: Apache-2.0
// Where the steps of a sequence stand, and those of the same sequence from its last step to its first.
#pragma once

#include <cstddef>

namespace fusebox::rnn {

// Calls f(place of a row at a step, place of the same row when time is reversed), places in rows of the input.
template <class Spec, class F>
void ForPlaces(const Spec& spec, size_t width, const F& f) {
  if (width == 0) return;  // then there may be more places than memory has bytes
  const size_t batch = static_cast<size_t>(spec.batch), steps = static_cast<size_t>(spec.steps);
  for (size_t t = 0; t < steps; ++t) {
    for (size_t row = 0; row < batch; ++row) {
      const size_t back = steps - 1 - t;
      if (spec.time_major) {
        f(t * batch + row, back * batch + row);
      } else {
        f(row * steps + t, row * steps + back);
      }
    }
  }
}

}  // namespace fusebox::rnn
