// SPDX-License-Identifier: Apache-2.0
// Vector code of cells with 8-bit weights: quantization of f32 to int8, products, and the hybrid LSTM cell.
// One table of functions per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/common/byte_product.h"
#include "plugins/common/simd_targets.h"

namespace fusebox::rnn {

using common::Activation;
using common::ByteLayout;
using common::ByteTask;

// out[row][output] = start[row][output] + sum * row_scales[row] * output_scales[output]
struct ScaledTask {
  ByteTask product;
  const float* row_scales;
  const float* output_scales;  // [padded outputs]
  const float* start;          // null: zeros; may be `out`
  size_t start_stride;         // 0: the same for every row
  float* out;
  size_t out_stride;
};

// One step of the plain hybrid LSTM cell (simd/lstm.h has the f32 one). Outputs of the product, scales and z
// are [block][gate][lane].
struct HybridStepTask {
  ByteTask product;  // of the quantized state
  const float* row_scales;
  const float* output_scales;
  const float* z;  // [rows][padded outputs]: products of the input and bias
  size_t cells;
  float* h_after;
  size_t h_after_stride;
  float* c;  // [rows][cells], updated
  Activation activation, gate_activation;
  float cell_clip;  // 0: none
  bool reverse;     // order of blocks: starts with the weights that the previous step left in the cache
};

struct ByteCode {
  size_t lanes;
  common::ByteSigns signs;
  // Groups [begin, end) only, here and below.
  void (*multiply)(const ByteTask&, int32_t* out, size_t out_stride, size_t begin, size_t end);
  void (*multiply_scaled)(const ScaledTask&, size_t begin, size_t end);
  void (*lstm_step)(const HybridStepTask&, size_t begin, size_t end);
  // Minimum and maximum of the values and 0; NaN is skipped.
  void (*range)(const float* x, size_t n, float* low, float* high);
  // to[i] = zero + x[i] * inverse: the product is rounded, then the sum to the nearest integer (half away
  // from zero), clamped to [least, 127]. NaN becomes `least`.
  void (*quantize)(const float* x, size_t n, float inverse, int32_t zero, int32_t least, int8_t* to);
};

// The code for every instruction set that this machine has, best first.
std::vector<const ByteCode*> ByteCodes();
using ByteChoice = common::SimdChoice<ByteCode, ByteCodes>;
inline const ByteCode& BestByteCode() { return ByteChoice::Best(); }
// Null: the best again.
inline void UseByteCodeForTest(const ByteCode* code) { ByteChoice::for_test = code; }

}  // namespace fusebox::rnn
