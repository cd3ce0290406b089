// SPDX-License-Identifier: Apache-2.0
// How far f32 may be from the truth, whoever computes it and in whatever order.
#pragma once

#include <cstdint>

#include "host/graph/graph.h"

namespace fusebox::verify {

// The most roundings that lie between an operand of the function and one of its results: one for each op on
// the way, and as many as it has terms where it sums up. Of a loop one step counts.
int64_t Roundings(const Module&, const Function&);

// The relative error that so many roundings to f32 add up to: n u / (1 - n u), u = 2^-24.
double RelativeError(int64_t roundings);

// An f32 tensor with every element off by that much, up or down as the seed says; other tensors as they are.
// 0 and +-1 stay.
Tensor Nudged(const Tensor&, double relative, uint64_t seed);

}  // namespace fusebox::verify
