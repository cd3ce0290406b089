// SPDX-License-Identifier: Apache-2.0
// Rotations of pairs of features by angles, compiled once per target.
#pragma once

#include <cstddef>
#include <vector>

#include "plugins/math/simd/targets.h"

namespace fusebox::nn {

struct RopeCode {
  // Cosines and sines of position * rates[i], or of position / rates[i]. Angles are reduced in f64, so that
  // both are within 1e-7 up to angles of 1e8.
  void (*angles)(double position, const float* rates, bool divides, size_t count, float* cosines,
                 float* sines);
  // y = x cos - z sin, and z' = z cos + x sin, where z are the features behind the first `half` ones.
  void (*rotate)(const float* x, const float* cosines, const float* sines, size_t half, float* y);
};

// Best first.
std::vector<const RopeCode*> RopeCodes();
using RopeSimd = math::SimdChoice<RopeCode, RopeCodes>;

}  // namespace fusebox::nn
