// SPDX-License-Identifier: Apache-2.0
// Sigmoid and tanh of the integer LSTM of TFLite, one number at a time.
#pragma once

#include <cstdint>

namespace fusebox::testing {

// x has 12 fractional bits, the result 15.
int16_t ReferenceSigmoid(int16_t x);
// x has `bits` fractional bits, in [9, 15]; the result 15.
int16_t ReferenceTanh(int16_t x, int32_t bits);

}  // namespace fusebox::testing
