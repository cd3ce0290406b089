// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/hybrid_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fusebox::rnn {

void HybridVector::Quantize(const float* x, int64_t n, bool asymmetric) {
  const PanelCode& code = BestPanelCode();
  const auto count = static_cast<size_t>(n);
  float low = 0, high = 0;
  code.range(x, count, &low, &high);
  std::fill(values + n, values + Bytes(n), int8_t{0});
  scale = 1;
  zero = 0;
  if (low == high) {
    std::fill_n(values, n, int8_t{0});
    return;
  }
  asymmetric ? SetRange(low, high) : SetMagnitude(std::max(-low, high));
  code.quantize(x, count, 1 / scale, zero, asymmetric ? -128 : -127, values);
}

void HybridVector::SetMagnitude(float largest) { scale = largest / 127; }

// The zero point is computed from the end of the range that has the smaller rounding error.
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

HybridMatrix HybridMatrix::Rows(int64_t first, int64_t count) const {
  HybridMatrix part = *this;
  part.values += first * columns;
  part.rows = count;
  if (!row_sums.empty()) part.row_sums = {row_sums.begin() + first, row_sums.begin() + first + count};
  return part;
}

void HybridMatrix::Multiply(const HybridVector& vector, bool add, float* sums) const {
  const float both = vector.scale * scale;
  constexpr int64_t kRowsAtOnce = 64;
  int32_t whole[kRowsAtOnce];
  for (int64_t first = 0; first < rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows - first);
    code_->dots(values + first * columns, static_cast<size_t>(count), static_cast<size_t>(columns),
                vector.values, whole);
    if (vector.zero != 0) {
      for (int64_t i = 0; i < count; ++i) whole[i] -= vector.zero * row_sums[static_cast<size_t>(first + i)];
    }
    float* const to = sums + first;
    if (add) {
      for (int64_t i = 0; i < count; ++i) to[i] += static_cast<float>(whole[i]) * both;
    } else {
      for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(whole[i]) * both;
    }
  }
}

std::vector<float> Dequantized(Tensor weights) {
  const float scale = weights.quant()->scales[0];
  std::vector<float> out;
  for (const int8_t value : weights.values<const int8_t>()) out.push_back(scale * static_cast<float>(value));
  return out;
}

}  // namespace fusebox::rnn
