// SPDX-License-Identifier: Apache-2.0
#define FUSEBOX_FLOATS_ONLY
#include "plugins/cpu/products/dots.h"

#include <algorithm>
#include <type_traits>

#include "plugins/math/costs.h"
#include "plugins/math/parallel.h"
#include "plugins/math/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/products/dots.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of all lanes, by halves.
template <class D>
HWY_INLINE hn::TFromD<D> Total([[maybe_unused]] D d, hn::Vec<D> v) {
  if constexpr (HWY_MAX_LANES_D(D) == 1) {
    return hn::GetLane(v);
  } else {
    const hn::Half<D> half;
    return Total(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// As many sums as fit in registers, each of as many partial sums over the depth as there are lanes. Rows of a
// are [kRows][segments], rows of b follow each other.
template <class T, int kRows, int kOutputs>
HWY_INLINE void Tile(const DotTask<T>& x, const T* const* rows, const T* b, T* c) {
  using D = hn::CappedTag<T, 32 / sizeof(T)>;
  using V = hn::Vec<D>;
  constexpr D d;
  constexpr int64_t kLanes = HWY_MAX_LANES_D(D);
  const int64_t ldb = x.k();
  V sums[kRows][kOutputs];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kOutputs; ++j) sums[i][j] = hn::Zero(d);
  }
  for (int64_t s = 0; s < x.segments; ++s, b += x.segment) {
    const T* a[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) a[i] = rows[i * x.segments + s];
    const auto add = [&](const auto& load) HWY_ATTR {
      V output[kOutputs];
#pragma GCC unroll 3
      for (int j = 0; j < kOutputs; ++j) output[j] = load(b + j * ldb);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const V row = load(a[i]);
#pragma GCC unroll 3
        for (int j = 0; j < kOutputs; ++j) sums[i][j] = hn::MulAdd(row, output[j], sums[i][j]);
      }
    };
    int64_t p = 0;
    for (; p + kLanes <= x.segment; p += kLanes)
      add([&](const T* from) HWY_ATTR { return hn::LoadU(d, from + p); });
    const auto rest = static_cast<size_t>(x.segment - p);
    if (rest > 0) add([&](const T* from) HWY_ATTR { return hn::LoadN(d, from + p, rest); });
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kOutputs; ++j) c[i * x.ldc + j] = Total(d, sums[i][j]);
  }
}

// kRows rows and outputs [begin, end).
template <class T, int kRows>
HWY_INLINE void Strip(const DotTask<T>& x, int64_t row, int64_t begin, int64_t end) {
  const T* const* const rows = x.rows + row * x.segments;
  T* const c = x.c + row * x.ldc;
  const int64_t k = x.k();
  int64_t j = begin;
  for (; j + 3 <= end; j += 3) Tile<T, kRows, 3>(x, rows, x.b + j * k, c + j);
  for (; j < end; ++j) Tile<T, kRows, 1>(x, rows, x.b + j * k, c + j);
}

template <class T>
void Block(const DotTask<T>& x) {
  // Outputs whose weights stay in the cache while all rows are read.
  const auto bytes = std::max<int64_t>(1, x.k() * static_cast<int64_t>(sizeof(T)));
  const int64_t each = std::max<int64_t>(3, math::kWeightsBytes / bytes / 3 * 3);
  for (int64_t j = 0; j < x.n; j += each) {
    const int64_t end = std::min(j + each, x.n);
    int64_t i = 0;
    for (; i + 4 <= x.m; i += 4) Strip<T, 4>(x, i, j, end);
    for (; i < x.m; ++i) Strip<T, 1>(x, i, j, end);
  }
  for (int64_t i = 0; i < x.m; ++i) {
    T* const c = x.c + i * x.ldc;
    for (int64_t j = 0; x.bias && j < x.n; ++j) c[j] += x.bias[j];
    Activate(x.activation, c, static_cast<size_t>(x.n));
  }
}

const DotKernels& Code() {
  static constexpr DotKernels code{Block<float>, Block<double>};
  return code;
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cpu {
namespace {

constexpr int64_t kTaskOutputs = 64;
constexpr int64_t kTaskRows = 128;

}  // namespace

std::vector<const DotKernels*> AllDotKernels() { return FUSEBOX_SIMD_TABLES(DotKernels, Code); }

template <class T>
void Multiply(const DotTask<T>& task) {
  const DotKernels& code = math::SimdChoice<DotKernels, AllDotKernels>::Best();
  if constexpr (std::is_same_v<T, float>) code.f32(task);
  else code.f64(task);
}

template <class T>
void Multiply(const T* a, int64_t k, const DotTask<T>& task) {
  const T* rows[kTaskRows];
  DotTask<T> part = task;
  part.rows = rows;
  part.segments = 1;
  part.segment = k;
  for (int64_t first = 0; first < task.m; first += kTaskRows, part.c += kTaskRows * task.ldc) {
    part.m = std::min(kTaskRows, task.m - first);
    for (int64_t i = 0; i < part.m; ++i) rows[i] = a + (first + i) * k;
    Multiply(part);
  }
}

template <class T>
void MultiplyParallel(const fbx_host* host, const T* a, int64_t k, const DotTask<T>& x) {
  const bool by_outputs = x.m < 4 * kTaskRows && x.n >= x.m;
  const int64_t unit = by_outputs ? kTaskOutputs : kTaskRows;
  const int64_t count = by_outputs ? x.n : x.m;
  const size_t grain = math::Grain(unit * k * (by_outputs ? x.m : x.n));
  const auto run = [&](size_t begin, size_t end, uint32_t) {
    const int64_t first = static_cast<int64_t>(begin) * unit;
    const int64_t size = std::min(static_cast<int64_t>(end) * unit, count) - first;
    DotTask<T> part = x;
    if (!by_outputs) {
      part.c += first * x.ldc;
      part.m = size;
      return Multiply(a + first * k, k, part);
    }
    part.b += first * k;
    part.c += first;
    if (part.bias) part.bias += first;
    part.n = size;
    Multiply(a, k, part);
  };
  math::ParallelFor(host, static_cast<size_t>((count + unit - 1) / unit), grain, run);
}

template <class T>
void TransposeMatrix(const T* in, int64_t rows, int64_t columns, T* out) {
  constexpr int64_t kEdge = 16;  // both sides of a square stay in the first-level cache
  for (int64_t i0 = 0; i0 < rows; i0 += kEdge) {
    for (int64_t j0 = 0; j0 < columns; j0 += kEdge) {
      for (int64_t j = j0; j < std::min(j0 + kEdge, columns); ++j) {
        for (int64_t i = i0; i < std::min(i0 + kEdge, rows); ++i) out[j * rows + i] = in[i * columns + j];
      }
    }
  }
}

template void Multiply<float>(const DotTask<float>&);
template void Multiply<double>(const DotTask<double>&);
template void Multiply<float>(const float*, int64_t, const DotTask<float>&);
template void Multiply<double>(const double*, int64_t, const DotTask<double>&);
template void MultiplyParallel<float>(const fbx_host*, const float*, int64_t, const DotTask<float>&);
template void MultiplyParallel<double>(const fbx_host*, const double*, int64_t, const DotTask<double>&);
template void TransposeMatrix<float>(const float*, int64_t, int64_t, float*);
template void TransposeMatrix<double>(const double*, int64_t, int64_t, double*);
template void TransposeMatrix<int8_t>(const int8_t*, int64_t, int64_t, int8_t*);
template void TransposeMatrix<uint8_t>(const uint8_t*, int64_t, int64_t, uint8_t*);
template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
#endif
