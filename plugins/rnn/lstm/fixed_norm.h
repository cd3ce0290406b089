// SPDX-License-Identifier: Apache-2.0
// Layer normalization of a gate in integers, to the bit what TFLite computes: the gate's sums to mean 0 and
// variance 1, times coefficients, plus a bias, with 12 bits of fraction.
#pragma once

#include <cstdint>

#include "plugins/rnn/cell/fixed_point.h"

namespace fusebox::rnn {

class FixedNorm {
 public:
  FixedNorm() = default;
  // Borrows both, one number per cell. A step of the coefficients is `scale`, one of the bias a 1024th of it.
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
