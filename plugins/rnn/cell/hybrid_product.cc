// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/hybrid_product.h"

#include <algorithm>

#include "plugins/math/simd/quantize.h"

namespace fusebox::rnn {
HybridRows::HybridRows(ScratchReader& scratch, size_t count, size_t columns)
    : values(scratch.Take<int8_t>(count * columns)),
      stride(columns),
      scales(scratch.Take<float>(count)),
      corrections(scratch.Take<int32_t>(count)) {}

size_t HybridRows::Bytes(size_t count, size_t columns) {
  return ScratchReader::Bytes(count * columns) + 2 * ScratchReader::Bytes(count * sizeof(float));
}

void HybridRows::Quantize(const InputRows& in, bool asymmetric) {
  const int32_t offset = BestByteKernels().signs.Offset(false);
  count = in.count();
  for (size_t i = 0; i < count; ++i) {
    const math::RowScale s = math::QuantizeRow(in.at(i), in.columns, asymmetric, values + i * stride);
    scales[i] = s.scale;
    corrections[i] = -(s.zero + offset);
  }
}

HybridMatrix::HybridMatrix(const Node& node, const std::vector<ByteTile>& parts, bool interleaved)
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
