// SPDX-License-Identifier: Apache-2.0
// Dot products of rows of `a` with rows of `b` (the layout of TFLite's FULLY_CONNECTED and CONV_2D weights)
// as they are: for f64, and for few rows of f32, for which packing (panels.h) does not pay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/base.hpp>

#include "plugins/cpu/base/activation.h"

namespace fusebox::cpu {

using namespace sdk;

// c[i][j] = activation(sum over p of a[i][p] * b[j][p] + bias[j]). Leading dimensions are in elements.
template <class T>
struct RowProduct {
  const T* a;
  int64_t lda;
  const T* b;
  int64_t ldb;
  const T* bias;  // n values, or null
  T* c;
  int64_t ldc;
  int64_t m, n, k;
  Activation activation = Activation::kNone;
};

// T is float or double. The summation order depends only on k and m, not on threads.
template <class T>
void Multiply(const RowProduct<T>& product);
template <class T>
void MultiplyParallel(const fbx_host* host, const RowProduct<T>& product);

// `Multiply` in one instruction set. Sums of an element depend on the number of lanes, so vectors have at
// most 32 bytes.
struct DotKernels {
  void (*f32)(const RowProduct<float>&);
  void (*f64)(const RowProduct<double>&);
};
std::vector<const DotKernels*> AllDotKernels();  // of this machine, best first

// out[j][i] = in[i][j] for `rows` x `columns` elements of `in`.
template <class T>
void TransposeMatrix(const T* in, int64_t rows, int64_t columns, T* out);

// out[tap][channel][depth] = in[channel][tap][depth].
template <class T>
void MoveTapsFirst(const T* in, int64_t channels, int64_t taps, int64_t depth, T* out) {
  for (int64_t tap = 0; tap < taps; ++tap)
    for (int64_t channel = 0; channel < channels; ++channel, out += depth)
      std::copy_n(in + (channel * taps + tap) * depth, depth, out);
}

extern template void Multiply<float>(const RowProduct<float>&);
extern template void Multiply<double>(const RowProduct<double>&);
extern template void MultiplyParallel<float>(const fbx_host*, const RowProduct<float>&);
extern template void MultiplyParallel<double>(const fbx_host*, const RowProduct<double>&);
extern template void TransposeMatrix<float>(const float*, int64_t, int64_t, float*);
extern template void TransposeMatrix<double>(const double*, int64_t, int64_t, double*);
extern template void TransposeMatrix<int8_t>(const int8_t*, int64_t, int64_t, int8_t*);
extern template void TransposeMatrix<uint8_t>(const uint8_t*, int64_t, int64_t, uint8_t*);
extern template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
