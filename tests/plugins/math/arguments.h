// SPDX-License-Identifier: Apache-2.0
// Arguments and errors of functions of f32.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fusebox::math {

// Numbers of every magnitude up to `most`, and both signs.
inline std::vector<float> Arguments(float most) {
  std::vector<float> x;
  for (float magnitude = 1e-8F; magnitude <= most; magnitude *= 1.003F) {
    x.push_back(magnitude);
    x.push_back(-magnitude);
  }
  return x;
}

// The distance in units of the last place of `expected`.
inline double Ulps(float is, double expected) {
  const double least = std::numeric_limits<float>::min();
  const double unit = std::ldexp(1, std::ilogb(std::max(std::abs(expected), least)) - 23);
  return std::abs(static_cast<double>(is) - expected) / unit;
}

}  // namespace fusebox::math
