// SPDX-License-Identifier: Apache-2.0
// Vector code of cells with 8-bit weights: quantization of f32 to int8, products, the hybrid LSTM cell, and
// the parts of integer cells. One table of functions per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/math/gemm/bytes.h"
#include "plugins/math/simd/fixed_point.h"
#include "plugins/math/simd/targets.h"

namespace fusebox::rnn {

using common::Activation;
using math::ByteLayout;
using math::ByteTask;

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

// Fixed-point factors of outputs: as math::FixedPoint, member by member. [padded outputs]
struct FixedScales {
  std::vector<int32_t> values, left, right;
  bool any_left = false;
};

// out[row][output] = saturated(start[row][output] + saturated product * scale), in 16 bits
struct WordTask {
  ByteTask product;
  const FixedScales* scales;
  const int16_t* start;  // null: zeros
  size_t start_stride;
  int16_t* out;  // [padded outputs] a row
  size_t out_stride;
};

// sums = saturated(sums + by * weights * c)
struct WordPeephole {
  size_t cells;
  const int16_t *weights, *c;
  math::FixedPoint by;
  int16_t* sums;
};

// c = forget * c + in * gate, saturated and clipped. Gates have 15 fractional bits, c has cell_bits.
struct WordCells {
  size_t cells;
  const int16_t *in, *forget, *gate;  // in may be null: 1 - forget
  int32_t cell_bits, cell_clip;       // cell_clip 0: none
  int16_t* c;
};

// h = gate * h + (1 - gate) * candidate. Gate and candidate have 15 fractional bits, h has h_bits. A gate of
// 32767 is one and keeps every bit.
struct WordBlend {
  size_t cells;
  const int16_t *gate, *candidate;
  int32_t h_bits;
  int16_t* h;
};

// out = saturated(by * a * b + zero)
struct WordProducts {
  size_t cells;
  const int16_t *a, *b;  // b may be null: 1
  math::FixedPoint by;
  int32_t zero;
  int8_t* out;
};

// values = saturated(by * (deviation * (1024 * values - mean) * coefficients + bias) / 1024), each product
// rounded.
struct WordNorm {
  size_t cells;
  const int16_t* coefficients;
  const int32_t* bias;
  int32_t mean;
  math::FixedPoint deviation, by;
  int16_t* values;
};

struct ByteKernels {
  size_t lanes, unit;  // of packed weights
  math::ByteSigns signs;
  // Groups [begin, end) only, here and below.
  void (*multiply)(const ByteTask&, int32_t* out, size_t out_stride, size_t begin, size_t end);
  void (*multiply_scaled)(const ScaledTask&, size_t begin, size_t end);
  void (*lstm_step)(const HybridStepTask&, size_t begin, size_t end);
  // Integer cells (simd/words-inl.h), of the LSTM bit-exact with TFLite.
  void (*multiply_words)(const WordTask&, size_t begin, size_t end);
  // `bits` fractional bits, in [9, 15], then 15; tanh in place if `from` is `to`.
  void (*sigmoid)(int16_t* values, int bits, size_t n);
  void (*tanh)(const int16_t* from, int bits, int16_t* to, size_t n);
  void (*add_peephole)(const WordPeephole&);
  // Sets the sums of the values and of their squares.
  void (*sum_words)(const int16_t* values, size_t n, int64_t* sum, int64_t* squares);
  void (*normalize)(const WordNorm&);
  void (*update_cells)(const WordCells&);
  void (*blend)(const WordBlend&);
  void (*scale_products)(const WordProducts&);
  // to[i] = clamp(from[i] + zero, least, most), in [-128, 127]
  void (*narrow)(const int16_t* from, size_t n, int32_t zero, int32_t least, int32_t most, int8_t* to);
};

// The code for every instruction set that this machine has, best first.
std::vector<const ByteKernels*> AllByteKernels();
using ByteChoice = math::SimdChoice<ByteKernels, AllByteKernels>;
inline const ByteKernels& BestByteKernels() { return ByteChoice::Best(); }
// Null: the best again.
inline void UseByteKernelsForTest(const ByteKernels* code) { ByteChoice::for_test = code; }

}  // namespace fusebox::rnn
