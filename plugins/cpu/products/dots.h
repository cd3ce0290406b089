// SPDX-License-Identifier: Apache-2.0
// The GEMM of f32 and f64 with weights as they are stored (the layout of TFLite's FULLY_CONNECTED and
// CONV_2D): C[m][n] = activation(sum over k of A[m][k] * B[n][k] + bias[n]). For f64, and for f32 where
// packing (panels.h) does not pay: few rows, or few outputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/base.hpp>

#include "plugins/cpu/base/activation.h"
#include "plugins/math/gemm/input.h"

namespace fusebox::cpu {

using namespace sdk;

// All rows of A are multiplied by it. T is float or double. The order of a sum depends only on K and on the
// segments of a row.
template <class T>
struct DotTask {
  const T* b;  // [n][k]
  int64_t n;
  const T* bias;  // n values, or null
  Activation activation = Activation::kNone;
};
template <class T>
void Multiply(const DotTask<T>& task, const math::Rows<T>& rows);

template <class T>
struct DotProduct {
  math::StridedRows<T> a;
  DotTask<T> task;
  T* c;
  int64_t ldc;  // elements from a row of C to the next
};
// On this thread, and on the host's threads.
template <class T>
void Multiply(const DotProduct<T>& product);
template <class T>
void MultiplyParallel(const fbx_host* host, const DotProduct<T>& product);

// `Multiply` in one instruction set. Sums of an element depend on the number of lanes, so vectors have at
// most 32 bytes.
struct DotKernels {
  void (*f32)(const DotTask<float>&, const math::Rows<float>&);
  void (*f64)(const DotTask<double>&, const math::Rows<double>&);
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

extern template void Multiply<float>(const DotTask<float>&, const math::Rows<float>&);
extern template void Multiply<double>(const DotTask<double>&, const math::Rows<double>&);
extern template void Multiply<float>(const DotProduct<float>&);
extern template void Multiply<double>(const DotProduct<double>&);
extern template void MultiplyParallel<float>(const fbx_host*, const DotProduct<float>&);
extern template void MultiplyParallel<double>(const fbx_host*, const DotProduct<double>&);
extern template void TransposeMatrix<float>(const float*, int64_t, int64_t, float*);
extern template void TransposeMatrix<double>(const double*, int64_t, int64_t, double*);
extern template void TransposeMatrix<int8_t>(const int8_t*, int64_t, int64_t, int8_t*);
extern template void TransposeMatrix<uint8_t>(const uint8_t*, int64_t, int64_t, uint8_t*);
extern template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
