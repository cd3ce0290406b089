// SPDX-License-Identifier: Apache-2.0
// The functions of plugins/math as arrays in, arrays out: one table per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/math/gemm/bytes.h"
#include "plugins/math/simd/fixed_point.h"

namespace fusebox::math {

struct MathCode {
  size_t lanes, unit;  // of ByteLayout
  ByteSigns signs;
  // Sums of all groups: [row][padded outputs].
  void (*multiply_bytes)(const ByteTask& task, int32_t* sums);
  void (*multiply_halves)(const ByteTask& task, int32_t* sums);
  // x[i] = by.Times(x[i])
  void (*times)(FixedPoint by, int32_t* x, size_t count);
  void (*exp2)(float* x, size_t count);
  void (*sigmoid)(float* x, size_t count);
  void (*tanh)(float* x, size_t count);
  // x[i] = sigmoid(gate[i]) * tanh(x[i])
  void (*gated_tanh)(const float* gate, float* x, size_t count);
};

// Best first.
std::vector<const MathCode*> MathCodes();

}  // namespace fusebox::math
