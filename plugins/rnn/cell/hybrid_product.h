// SPDX-License-Identifier: Apache-2.0
// Hybrid arithmetic: products of int8 matrices with f32 vectors that are quantized before. Sums are integers,
// everything else is f32.
// Each vector has a scale (plugins/math/simd/quantize.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/byte_matrix.h"
#include "plugins/rnn/cell/kernel.h"
#include "plugins/rnn/simd/bytes.h"
#include "plugins/rnn/simd/cells.h"

namespace fusebox::rnn {

using namespace sdk;

inline bool AsymmetricInputs(const Node& node) { return node.attrs().b("asymmetric_quantize_inputs", false); }

inline InputRows OneRow(const float* x, int64_t columns) {
  return {x, 1, 1, 0, 0, static_cast<size_t>(columns)};
}

// Quantized vectors, in borrowed memory.
class HybridRows {
 public:
  HybridRows(ScratchReader& scratch, size_t count, size_t columns);
  static size_t Bytes(size_t count, size_t columns);

  // At most `count` vectors of `columns` values.
  void Quantize(const InputRows& in, bool asymmetric);

  int8_t* values;
  size_t stride;
  size_t count = 0;
  float* scales;
  int32_t* corrections;  // what the sum of a row of weights is multiplied by
};

// A ByteMatrix with scales.
class HybridMatrix : public ByteMatrix {
 public:
  HybridMatrix() = default;
  HybridMatrix(const Node& node, const std::vector<ByteTile>& parts, bool interleaved = false);
  // A whole operand.
  HybridMatrix(const Node& node, uint32_t operand)
      : HybridMatrix(node, {{operand, 0, node.in(operand).dim(0)}}) {}

  ByteTask Product(const HybridRows& rows) const;
  // out[i] = start[i] + matrix * row i; `start` may be null or `out`. Strides are in elements; start_stride
  // 0: the same for every row.
  void Multiply(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                size_t out_stride) const;
  ScaledTask TaskOf(const HybridRows& rows, const float* start, size_t start_stride, float* out,
                    size_t out_stride) const;
  const float* scales() const { return scales_.data(); }  // [padded outputs]

 private:
  std::vector<float> scales_;
};

std::vector<float> Dequantized(Tensor weights);

}  // namespace fusebox::rnn
