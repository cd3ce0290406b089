// SPDX-License-Identifier: Apache-2.0
// Functions by integer arithmetic, to the bit what TFLite's integer LSTM computes.
//
// Sigmoid and hyperbolic tangent: the exponential of a quarter by its series, times powers of e for the other
// bits, and a division by three Newton steps. The inverse root: five Newton steps.
#pragma once

#include <cstdint>

#include "plugins/rnn/cell/fixed_point.h"

namespace fusebox::rnn {

// x has 12 bits of fraction, the result 15.
int16_t FixedSigmoid(int16_t x);
// x has `bits` of fraction, in [9, 15]; the result 15.
int16_t FixedTanh(int16_t x, int32_t bits);
// 1 / sqrt(x), x >= 1.
FixedPoint InverseRoot(int32_t x);

}  // namespace fusebox::rnn
