// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/fixed_norm.h"

#include <algorithm>

#include "plugins/rnn/lstm/fixed_functions.h"

namespace fusebox::rnn {

FixedNorm::FixedNorm(const int16_t* coefficients, const int32_t* bias, float scale)
    : coefficients_(coefficients),
      bias_(bias),
      by_(scale),
      least_variance_(Saturate<int32_t>(static_cast<int64_t>(std::clamp(10000.0F * scale, 1.0F, 1e9F)))) {
  by_.shift = std::min(by_.shift + 12, 30);
}

void FixedNorm::Apply(int16_t* values, int64_t count) const {
  if (count == 0) return;
  int64_t sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i];
    squares += int64_t{values[i]} * values[i];
  }
  // The mean has 10 bits of fraction, the variance 20 at first.
  const auto mean = static_cast<int32_t>(sum * 1024 / count);
  const int64_t variance = squares * ((int64_t{1} << 20) / count) - int64_t{mean} * mean;
  const auto whole = static_cast<int32_t>(variance / (1 << 20));
  const FixedPoint deviation = InverseRoot(whole < 1 ? least_variance_ : whole);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t normal = deviation.Times(1024 * values[i] - mean);
    const int64_t sized = normal * coefficients_[i] + bias_[i];
    values[i] =
        Saturate<int16_t>(by_.Times(Saturate<int32_t>((sized > 0 ? sized + 512 : sized - 512) / 1024)));
  }
}

}  // namespace fusebox::rnn
