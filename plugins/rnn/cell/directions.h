// SPDX-License-Identifier: Apache-2.0
// Where the steps of a sequence stand, and those of the same sequence from its last step to its first.
#pragma once

#include <algorithm>
#include <cstddef>

namespace fusebox::rnn {

// Calls f(place of a row at a step, place of the same row when time is reversed), places in rows of the
// input.
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

// Joins the results of two directions, rows of `u` and `v` values: `back` runs from the last step to the
// first.
template <class T, class Spec>
void JoinDirections(const Spec& spec, const T* ahead, size_t u, const T* back, size_t v, T* out) {
  ForPlaces(spec, u + v, [&](size_t at, size_t from) {
    T* const row = out + at * (u + v);
    std::copy_n(ahead + at * u, u, row);
    std::copy_n(back + from * v, v, row + u);
  });
}

}  // namespace fusebox::rnn
