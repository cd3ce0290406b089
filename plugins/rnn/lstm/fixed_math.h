// SPDX-License-Identifier: Apache-2.0
// Layer normalization in integer arithmetic, bit-exact with the integer LSTM of TFLite.
#pragma once

#include <cstdint>

#include "plugins/math/simd/fixed_point.h"
#include "plugins/rnn/simd/bytes.h"

namespace fusebox::rnn {

using math::FixedPoint;
using math::Saturate;
using math::ShiftRounded;

// 1 / sqrt(x), x >= 1: five Newton steps.
FixedPoint InverseRoot(int32_t x);

// Layer normalization of a gate: scales its sums to mean 0 and variance 1, multiplies coefficients and adds a
// bias, with 12 fractional bits.
class FixedNorm {
 public:
  FixedNorm() = default;
  // `scale` is the scale of the coefficients; the bias has a 1024th of it.
  explicit FixedNorm(float scale);
  // In place. One coefficient and bias per value.
  void Apply(const ByteKernels& code, const int16_t* coefficients, const int32_t* bias, int16_t* values,
             size_t count) const;

 private:
  FixedPoint by_;
  int32_t least_variance_ = 1;
};

}  // namespace fusebox::rnn
