// SPDX-License-Identifier: Apache-2.0
// Sigmoid and hyperbolic tangent of 16-bit fixed-point numbers by integer arithmetic, to the bit what TFLite's integer LSTM computes: the
// exponential of a quarter by its series, times powers of e for the other bits, and a division by three Newton steps.
#pragma once

#include <cstdint>

namespace fusebox::rnn {

// x has 12 bits of fraction, the result 15.
int16_t FixedSigmoid(int16_t x);
// x has `bits` of fraction, in [9, 15]; the result 15.
int16_t FixedTanh(int16_t x, int32_t bits);

}  // namespace fusebox::rnn
