// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/hybrid_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fusebox::rnn {
void HybridVector::Quantise(const float* x, int64_t n, bool asymmetric) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  scale = 1;
  zero = 0;
  if (low == high) {
    std::fill_n(values, n, int8_t{0});
    return;
  }
  asymmetric ? SetRange(low, high) : SetMagnitude(std::max(-low, high));
  const float inverse = 1 / scale;
  const int32_t least = asymmetric ? -128 : -127;
  for (int64_t i = 0; i < n; ++i) {
    const float stored = std::round(static_cast<float>(zero) + x[i] * inverse);
    values[i] = static_cast<int8_t>(stored > 127 ? 127 : stored > static_cast<float>(least) ? stored : least);
  }
}

void HybridVector::SetMagnitude(float most) { scale = most / 127; }

// The zero point is that of the two ends whose rounding loses less.
void HybridVector::SetRange(double low, double high) {
  const double step = (high - low) / 255;
  const double from_low = -128 - low / step, from_high = 127 - high / step;
  const double low_error = 128 + std::abs(low / step), high_error = 127 + std::abs(high / step);
  if (!std::isfinite(step)) return SetMagnitude(std::numeric_limits<float>::infinity());
  zero = static_cast<int32_t>(
      std::clamp(std::round(low_error < high_error ? from_low : from_high), -128.0, 127.0));
  scale = static_cast<float>(step);
}

HybridMatrix::HybridMatrix(Tensor weights, bool asymmetric)
    : values(weights.data<const int8_t>()),
      rows(weights.dim(0)),
      columns(weights.dim(1)),
      scale(weights.quant()->scales[0]),
      code_(&BestPanelCode()) {
  for (int64_t row = 0; asymmetric && row < rows; ++row)
    row_sums.push_back(std::accumulate(values + row * columns, values + (row + 1) * columns, 0));
}

void HybridMatrix::Multiply(const HybridVector& vector, bool add, float* sums) const {
  const float both = vector.scale * scale;
  constexpr int64_t kAtOnce = 64;
  int32_t whole[kAtOnce];
  for (int64_t first = 0; first < rows; first += kAtOnce) {
    const int64_t count = std::min(kAtOnce, rows - first);
    code_->dots(values + first * columns, static_cast<size_t>(count), static_cast<size_t>(columns),
                vector.values, whole);
    for (int64_t i = 0; i < count; ++i) {
      const int32_t zero = vector.zero == 0 ? 0 : vector.zero * row_sums[static_cast<size_t>(first + i)];
      const float product = static_cast<float>(whole[i] - zero) * both;
      sums[first + i] = add ? sums[first + i] + product : product;
    }
  }
}

}  // namespace fusebox::rnn
