// SPDX-License-Identifier: Apache-2.0
// Bounds of f32 rounding errors, independent of kernels and summation order.
#pragma once

#include <cstdint>

#include "host/graph/graph.h"

namespace fusebox::verify {

// The most roundings on a path from an operand to a result: one per op, and one per term of a sum. A loop
// counts as one iteration.
int64_t Roundings(const Module&, const Function&);

// The relative error of n roundings to f32: n u / (1 - n u), u = 2^-24 (Higham, Accuracy and Stability,
// gamma_n).
double RelativeError(int64_t roundings);

// A copy of an f32 tensor with each element changed by this relative error, up or down depending on the seed.
// 0 and +-1 stay. Other tensors are unchanged.
Tensor Nudged(const Tensor&, double relative, uint64_t seed);

}  // namespace fusebox::verify
