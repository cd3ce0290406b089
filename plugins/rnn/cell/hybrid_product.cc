// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/hybrid_product.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fusebox::rnn {
namespace {

HybridScale ScaleOfMagnitude(float largest) { return {largest / 127, 0}; }

// The zero point is computed from the end of the range that has the smaller rounding error.
HybridScale ScaleOfRange(double low, double high) {
  const double step = (high - low) / 255;
  const double from_low = -128 - low / step, from_high = 127 - high / step;
  const double low_error = 128 + std::abs(low / step), high_error = 127 + std::abs(high / step);
  if (!std::isfinite(step)) return ScaleOfMagnitude(std::numeric_limits<float>::infinity());
  const double zero = std::round(low_error < high_error ? from_low : from_high);
  return {static_cast<float>(step), static_cast<int32_t>(std::clamp(zero, -128.0, 127.0))};
}

}  // namespace

HybridScale QuantizeHybrid(const ByteCode& code, const float* x, size_t n, bool asymmetric, int8_t* values) {
  float low = 0, high = 0;
  code.range(x, n, &low, &high);
  if (low == high) {
    std::fill_n(values, n, int8_t{0});
    return {};
  }
  const HybridScale s = asymmetric ? ScaleOfRange(low, high) : ScaleOfMagnitude(std::max(-low, high));
  code.quantize(x, n, 1 / s.scale, s.zero, asymmetric ? -128 : -127, values);
  return s;
}

HybridRows::HybridRows(ScratchReader& scratch, size_t count, size_t columns)
    : values(scratch.Take<int8_t>(count * columns)),
      stride(columns),
      scales(scratch.Take<float>(count)),
      corrections(scratch.Take<int32_t>(count)) {}

size_t HybridRows::Bytes(size_t count, size_t columns) {
  return ScratchReader::Bytes(count * columns) + 2 * ScratchReader::Bytes(count * sizeof(float));
}

void HybridRows::Quantize(const InputRows& in, bool asymmetric) {
  const ByteCode& code = BestByteCode();
  const int32_t offset = code.signs.Offset(false);
  count = in.count();
  for (size_t i = 0; i < count; ++i) {
    const HybridScale s = QuantizeHybrid(code, in.at(i), in.columns, asymmetric, values + i * stride);
    scales[i] = s.scale;
    corrections[i] = -(s.zero + offset);
  }
}

HybridMatrix::HybridMatrix(const Node& node, const std::vector<BytePart>& parts, bool interleaved)
    : ByteMatrix(node, parts, interleaved), scales_(layout().padded()) {
  for (size_t i = 0; i < parts.size(); ++i) {
    for (size_t row = 0; row < static_cast<size_t>(parts[i].rows); ++row)
      scales_[OutputOf(i, row)] = node.in(parts[i].operand).quant()->scales[0];
  }
}

ByteTask HybridMatrix::Product(const HybridRows& rows) const {
  ByteTask task = ByteMatrix::Product(rows.values, rows.count, rows.stride);
  task.terms[0] = {addends(), rows.corrections};
  return task;
}

ScaledTask HybridMatrix::TaskOf(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                                size_t out_stride) const {
  return {Product(rows), rows.scales, scales(), start, start_stride, out, out_stride};
}

void HybridMatrix::Multiply(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                            size_t out_stride) const {
  code().multiply_scaled(TaskOf(rows, start, start_stride, out, out_stride), 0, groups());
}

std::vector<float> Dequantized(Tensor weights) {
  const float scale = weights.quant()->scales[0];
  std::vector<float> out;
  for (const int8_t value : weights.values<const int8_t>()) out.push_back(scale * static_cast<float>(value));
  return out;
}

}  // namespace fusebox::rnn
