// SPDX-License-Identifier: Apache-2.0
// Products of a matrix of 8 bits with a vector that is quantized before it meets it: sums are integers, all
// else is f32.
//
// A vector's scale is its own: [-127, 127] spans its largest magnitude, or, asymmetric, [-128, 127] its range
// widened to hold 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/simd/panels.h"

namespace fusebox::rnn {

// Bytes of scratch for so many values, such that what follows is aligned.
inline size_t HybridBytes(int64_t values) { return RoundUp(static_cast<size_t>(values), kByteBlock); }

// real = scale * (value - zero). The values' memory, HybridBytes of it, is another's; zeros are behind them.
struct HybridVector {
  int8_t* values = nullptr;
  float scale = 1;
  int32_t zero = 0;

  void Quantize(const float* x, int64_t n, bool asymmetric);

 private:
  void SetMagnitude(float most);
  void SetRange(double low, double high);
};

// Borrows the tensor's values: [rows, columns], checked by CheckStoredWeights.
struct HybridMatrix {
  HybridMatrix() = default;
  HybridMatrix(Tensor weights, bool asymmetric);
  HybridMatrix Rows(int64_t first, int64_t count) const;
  // sums[i] = row i times the vector, or += with `add`.
  void Multiply(const HybridVector& vector, bool add, float* sums) const;

  const int8_t* values = nullptr;
  int64_t rows = 0, columns = 0;
  float scale = 0;
  std::vector<int32_t> row_sums;  // where vectors may have zero points

 private:
  const PanelCode* code_ = nullptr;
};

}  // namespace fusebox::rnn
