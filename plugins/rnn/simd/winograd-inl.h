// SPDX-License-Identifier: Apache-2.0
// Transforms of Winograd's minimal filtering (Lavin and Gray, arXiv 1509.09308), for the forms of panels.h.
// Their points are 0, 1, -1 and infinity for 4 inputs, also 2 and -2 for 6. Compiled once per target.
#if defined(FUSEBOX_RNN_SIMD_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_RNN_SIMD_WINOGRAD_INL_H_
#undef FUSEBOX_RNN_SIMD_WINOGRAD_INL_H_
#else
#define FUSEBOX_RNN_SIMD_WINOGRAD_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"
#include "plugins/rnn/simd/cells.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

// Transforms kPoints inputs in place.
template <size_t kPoints>
HWY_INLINE void TransformInputs(FloatVector* HWY_RESTRICT d, size_t step) {
  [[maybe_unused]] const auto at = [&](size_t i) HWY_ATTR -> FloatVector& { return d[i * step]; };
  if constexpr (kPoints == 4) {
    const FloatVector d0 = at(0);
    const FloatVector d1 = at(1);
    const FloatVector d2 = at(2);
    const FloatVector d3 = at(3);
    at(0) = hn::Sub(d0, d2);
    at(1) = hn::Add(d1, d2);
    at(2) = hn::Sub(d2, d1);
    at(3) = hn::Sub(d3, d1);
  } else if constexpr (kPoints == 6) {
    const FloatVector four = hn::Set(fd, 4.0f);
    const FloatVector five = hn::Set(fd, 5.0f);
    const FloatVector d0 = at(0);
    const FloatVector d1 = at(1);
    const FloatVector d2 = at(2);
    const FloatVector d3 = at(3);
    const FloatVector d4 = at(4);
    const FloatVector d5 = at(5);
    const FloatVector even = hn::NegMulAdd(four, d2, d4);
    const FloatVector odd = hn::NegMulAdd(four, d1, d3);
    const FloatVector near = hn::Sub(d4, d2);
    const FloatVector twice = hn::Sub(d3, d1);
    const FloatVector far = hn::Add(twice, twice);
    at(0) = hn::MulAdd(four, d0, hn::NegMulAdd(five, d2, d4));
    at(1) = hn::Add(even, odd);
    at(2) = hn::Sub(even, odd);
    at(3) = hn::Add(near, far);
    at(4) = hn::Sub(near, far);
    at(5) = hn::MulAdd(four, d1, hn::NegMulAdd(five, d3, d5));
  }
}

template <size_t kForm>
void WinogradIn(const WinogradInTask& task) {
  constexpr size_t kRows = kWinogradForms[kForm].points[0];
  constexpr size_t kWidth = kWinogradForms[kForm].points[1];
  for (size_t k = 0; k < task.channels; k += kFloatLanes) {
    const size_t left = task.channels - k;
    FloatVector d[kRows * kWidth];
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 6
      for (size_t c = 0; c < kWidth; ++c)
        d[r * kWidth + c] = LoadSome(task.x + r * task.row_stride + c * task.channels + k, left);
    }
#pragma GCC unroll 6
    for (size_t c = 0; c < kWidth; ++c) TransformInputs<kRows>(d + c, kWidth);
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      TransformInputs<kWidth>(d + r * kWidth, 1);
#pragma GCC unroll 6
      for (size_t c = 0; c < kWidth; ++c)
        StoreSome(d[r * kWidth + c], task.to + (r * kWidth + c) * task.stride + k, left);
    }
  }
}

// y[kOutputs] from kPoints products.
template <size_t kPoints, size_t kOutputs>
HWY_INLINE void TransformProducts(const FloatVector* HWY_RESTRICT m, FloatVector* HWY_RESTRICT y,
                                  size_t step) {
  if constexpr (kPoints == 1) {
    y[0] = m[0];
  } else {
    const FloatVector sum = hn::Add(m[1], m[2]);
    const FloatVector difference = hn::Sub(m[1], m[2]);
    if constexpr (kPoints == 4) {
      y[0] = hn::Add(m[0], sum);
      y[step] = hn::Add(difference, m[3]);
    } else {
      const FloatVector sum2 = hn::Add(m[3], m[4]);
      const FloatVector difference2 = hn::Sub(m[3], m[4]);
      const FloatVector two = hn::MulAdd(hn::Set(fd, 2.0f), difference2, difference);
      y[0] = hn::Add(hn::Add(m[0], sum), sum2);
      if constexpr (kOutputs == 2) {
        y[step] = hn::Add(two, m[5]);
      } else {
        y[step] = two;
        y[2 * step] = hn::MulAdd(hn::Set(fd, 4.0f), sum2, sum);
        y[3 * step] = hn::Add(hn::MulAdd(hn::Set(fd, 8.0f), difference2, difference), m[5]);
      }
    }
  }
}

template <size_t kForm>
void WinogradOut(const WinogradOutTask& task) {
  constexpr WinogradForm kOf = kWinogradForms[kForm];
  constexpr size_t kRows = kOf.points[0];
  constexpr size_t kWidth = kOf.points[1];
  for (size_t k = 0; k < task.columns; k += kFloatLanes) {
    FloatVector half[kOf.outputs[0] * kWidth], y[kOf.outputs[1]];
#pragma GCC unroll 6
    for (size_t c = 0; c < kWidth; ++c) {
      FloatVector m[kRows];
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r)
        m[r] = hn::LoadU(fd, task.products + (r * kWidth + c) * task.stride + k);
      TransformProducts<kRows, kOf.outputs[0]>(m, half + c, kWidth);
    }
#pragma GCC unroll 2
    for (size_t row = 0; row < kOf.outputs[0]; ++row) {
      if (row >= task.rows) break;
      TransformProducts<kWidth, kOf.outputs[1]>(half + row * kWidth, y, 1);
#pragma GCC unroll 4
      for (size_t column = 0; column < kOf.outputs[1]; ++column) {
        if (column >= task.width) break;
        float* const at = task.sums + row * task.row_stride + column * task.columns + k;
        hn::StoreU(hn::Add(hn::LoadU(fd, at), y[column]), fd, at);
      }
    }
  }
}

bool Within(const float* x, size_t n, float bound) {
  const auto most = hn::Set(fd, bound);
  for (size_t i = 0; i < n; i += kFloatLanes)
    if (!hn::AllTrue(fd, hn::Le(hn::Abs(LoadSome(x + i, n - i)), most))) return false;
  return true;
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
