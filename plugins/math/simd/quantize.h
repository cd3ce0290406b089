// SPDX-License-Identifier: Apache-2.0
// Quantizes rows of f32 at run time, for products with 8-bit weights. TFLite's hybrid kernels have the same
// formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/math/simd/targets.h"

namespace fusebox::math {

// real = scale * (value - zero)
struct RowScale {
  float scale = 1;
  int32_t zero = 0;
};

// Quantizes a row to `values`, [n]. Symmetric: its largest magnitude becomes 127. Asymmetric: its range,
// extended to include 0, spans the 255 steps from -128. A row that holds NaN or an infinity has a scale of
// NaN, so that its products are NaN, too.
RowScale QuantizeRow(const float* x, size_t n, bool asymmetric, int8_t* values);

struct QuantizeCode {
  // Sets the minimum and the maximum of the values and 0. Returns whether all values are finite.
  bool (*range)(const float* x, size_t n, float* low, float* high);
  // to[i] = zero + x[i] * inverse: the product is rounded, then the sum to the nearest integer (half away
  // from zero), clamped to [least, 127]. NaN becomes `least`.
  void (*quantize)(const float* x, size_t n, float inverse, int32_t zero, int32_t least, int8_t* to);
};

// The code for every instruction set that this machine has, best first.
std::vector<const QuantizeCode*> QuantizeCodes();
using QuantizeChoice = SimdChoice<QuantizeCode, QuantizeCodes>;

}  // namespace fusebox::math
