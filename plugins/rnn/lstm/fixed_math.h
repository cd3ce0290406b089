// SPDX-License-Identifier: Apache-2.0
// Functions in integer arithmetic, bit-exact with the integer LSTM of TFLite.
//
// Sigmoid and tanh: the exponential of a quarter by its series, times powers of e for the other bits, and a
// division by three Newton steps. The inverse root: five Newton steps.
#pragma once

#include <cstdint>

#include "plugins/common/fixed_point.h"

namespace fusebox::rnn {

using common::FixedPoint;
using common::Saturate;
using common::ShiftRounded;

// x has 12 fractional bits, the result 15.
int16_t FixedSigmoid(int16_t x);
// x has `bits` fractional bits, in [9, 15]; the result 15.
int16_t FixedTanh(int16_t x, int32_t bits);
// 1 / sqrt(x), x >= 1.
FixedPoint InverseRoot(int32_t x);

// Layer normalization of a gate: scales its sums to mean 0 and variance 1, multiplies coefficients and adds a
// bias, with 12 fractional bits.
class FixedNorm {
 public:
  FixedNorm() = default;
  // Borrows both, one number per cell. `scale` is that of the coefficients; the bias has a 1024th of it.
  FixedNorm(const int16_t* coefficients, const int32_t* bias, float scale);
  // In place.
  void Apply(int16_t* values, int64_t count) const;

 private:
  const int16_t* coefficients_ = nullptr;
  const int32_t* bias_ = nullptr;
  FixedPoint by_;
  int32_t least_variance_ = 1;
};

}  // namespace fusebox::rnn
