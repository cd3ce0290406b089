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

HybridMatrix::HybridMatrix(const Node& node, std::vector<HybridPart> parts, bool interleaved)
    : code_(&BestByteCode()) {
  const auto rows = static_cast<size_t>(parts[0].rows),
             columns = static_cast<size_t>(node.in(parts[0].operand).dim(1));
  layout_ = {code_->lanes, rows, columns};
  if (parts.size() > 1) layout_.outputs = parts.size() * layout_.padded();
  PackedWeights::Recipe recipe{.what = "hybrid", .size = layout_.bytes() + 8 * layout_.padded()};
  recipe.numbers = {static_cast<int64_t>(code_->lanes), interleaved ? 1 : 0};
  for (const HybridPart& part : parts) {
    recipe.numbers.insert(recipe.numbers.end(), {part.first, part.rows});
    recipe.sources.push_back(node.in(part.operand));
  }
  packed_.emplace(node, recipe,
                  [&](void* to) { Pack(node, parts, interleaved, static_cast<std::byte*>(to)); });
  values_ = packed_->data<int8_t>();
  sums_ = reinterpret_cast<const int32_t*>(values_ + layout_.bytes());
  scales_ = reinterpret_cast<const float*>(sums_ + layout_.padded());
}

void HybridMatrix::Pack(const Node& node, const std::vector<HybridPart>& parts, bool interleaved,
                        std::byte* to) const {
  std::fill_n(to, layout_.bytes() + 8 * layout_.padded(), std::byte{0});
  auto* const values = reinterpret_cast<int8_t*>(to);
  auto* const sums = reinterpret_cast<int32_t*>(values + layout_.bytes());
  auto* const scales = reinterpret_cast<float*>(sums + layout_.padded());
  const size_t lanes = layout_.lanes, columns = layout_.columns, padded = layout_.padded() / parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor weights = node.in(parts[i].operand);
    const auto* row = weights.data<const int8_t>() + static_cast<size_t>(parts[i].first) * columns;
    for (size_t r = 0; r < static_cast<size_t>(parts[i].rows); ++r, row += columns) {
      const size_t output = interleaved ? (r / lanes * parts.size() + i) * lanes + r % lanes : i * padded + r;
      common::PackByteRow(layout_, output, row, values);
      sums[output] = common::SumOfBytes(row, columns);
      scales[output] = weights.quant()->scales[0];
    }
  }
}

ByteTask HybridMatrix::Product(const HybridRows& rows) const {
  return {.rows = rows.values,
          .count = rows.count,
          .stride = rows.stride,
          .flipped = code_->signs.Flips(false),
          .layout = layout_,
          .weights = values_,
          .terms = {{sums_, rows.corrections}}};
}

ScaledTask HybridMatrix::TaskOf(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                                size_t out_stride) const {
  return {Product(rows), rows.scales, scales_, start, start_stride, out, out_stride};
}

void HybridMatrix::Multiply(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                            size_t out_stride) const {
  code_->multiply_scaled(TaskOf(rows, start, start_stride, out, out_stride), 0, groups());
}

std::vector<float> Dequantized(Tensor weights) {
  const float scale = weights.quant()->scales[0];
  std::vector<float> out;
  for (const int8_t value : weights.values<const int8_t>()) out.push_back(scale * static_cast<float>(value));
  return out;
}

}  // namespace fusebox::rnn
