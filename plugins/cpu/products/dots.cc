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

// As many sums as fit in registers, each of as many partial sums over the depth as there are lanes. Rows of b
// follow each other.
template <class T, int kRows, int kOutputs>
HWY_INLINE void Tile(const math::Rows<T>& rows, size_t row, const T* b, int64_t output) {
  using D = hn::CappedTag<T, 32 / sizeof(T)>;
  using V = hn::Vec<D>;
  constexpr D d;
  constexpr size_t kLanes = HWY_MAX_LANES_D(D);
  const size_t ldb = rows.segments * rows.segment;
  V sums[kRows][kOutputs];
  const T* a[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    a[i] = rows.a[row + static_cast<size_t>(i)];
#pragma GCC unroll 3
    for (int j = 0; j < kOutputs; ++j) sums[i][j] = hn::Zero(d);
  }
  for (size_t s = 0; s < rows.segments; ++s, b += rows.segment) {
    const ptrdiff_t first = rows.offsets[s];
    const auto add = [&](size_t p, const auto& load) HWY_ATTR {
      V outputs[kOutputs];
#pragma GCC unroll 3
      for (size_t j = 0; j < kOutputs; ++j) outputs[j] = load(b + j * ldb + p);
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const V values = load(a[i] + first + p);
#pragma GCC unroll 3
        for (int j = 0; j < kOutputs; ++j) sums[i][j] = hn::MulAdd(values, outputs[j], sums[i][j]);
      }
    };
    size_t p = 0;
    for (; p + kLanes <= rows.segment; p += kLanes)
      add(p, [&](const T* from) HWY_ATTR { return hn::LoadU(d, from); });
    const size_t rest = rows.segment - p;
    if (rest > 0) add(p, [&](const T* from) HWY_ATTR { return hn::LoadN(d, from, rest); });
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    T* const c = rows.c[row + static_cast<size_t>(i)] + output;
#pragma GCC unroll 3
    for (int j = 0; j < kOutputs; ++j) c[j] = Total(d, sums[i][j]);
  }
}

// kRows rows and outputs [begin, end).
template <class T, int kRows>
HWY_INLINE void Strip(const DotTask<T>& task, const math::Rows<T>& rows, size_t row, int64_t begin,
                      int64_t end) {
  const auto k = static_cast<int64_t>(rows.segments * rows.segment);
  int64_t j = begin;
  for (; j + 3 <= end; j += 3) Tile<T, kRows, 3>(rows, row, task.b + j * k, j);
  for (; j < end; ++j) Tile<T, kRows, 1>(rows, row, task.b + j * k, j);
}

template <class T>
void Block(const DotTask<T>& task, const math::Rows<T>& rows) {
  // Outputs whose weights stay in the cache while all rows are read.
  const auto bytes = static_cast<int64_t>(std::max<size_t>(1, rows.segments * rows.segment * sizeof(T)));
  const int64_t each = std::max<int64_t>(3, math::kWeightsBytes / bytes / 3 * 3);
  for (int64_t j = 0; j < task.n; j += each) {
    const int64_t end = std::min(j + each, task.n);
    size_t i = 0;
    for (; i + 4 <= rows.m; i += 4) Strip<T, 4>(task, rows, i, j, end);
    for (; i < rows.m; ++i) Strip<T, 1>(task, rows, i, j, end);
  }
  for (size_t i = 0; i < rows.m; ++i) {
    for (int64_t j = 0; task.bias && j < task.n; ++j) rows.c[i][j] += task.bias[j];
    Activate(task.activation, rows.c[i], static_cast<size_t>(task.n));
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

// A unit of MultiplyParallel has as many outputs or rows.
constexpr int64_t kUnitOutputs = 64;
constexpr int64_t kUnitRows = 128;

}  // namespace

std::vector<const DotKernels*> AllDotKernels() { return FUSEBOX_SIMD_TABLES(DotKernels, Code); }

template <class T>
void Multiply(const DotTask<T>& task, const math::Rows<T>& rows) {
  const DotKernels& code = math::SimdChoice<DotKernels, AllDotKernels>::Best();
  if constexpr (std::is_same_v<T, float>) code.f32(task, rows);
  else code.f64(task, rows);
}

template <class T>
void Multiply(const DotProduct<T>& product) {
  math::ForRows(product.a, product.c, static_cast<size_t>(product.ldc), 0, product.a.count(),
                [&](size_t, const math::Rows<T>& rows) { Multiply(product.task, rows); });
}

template <class T>
void MultiplyParallel(const fbx_host* host, const DotProduct<T>& x) {
  const auto m = static_cast<int64_t>(x.a.count());
  const int64_t n = x.task.n;
  const auto k = static_cast<int64_t>(x.a.columns);
  const bool by_outputs = m < 4 * kUnitRows && n >= m;
  const int64_t unit = by_outputs ? kUnitOutputs : kUnitRows;
  const int64_t count = by_outputs ? n : m;
  const auto run = [&](size_t begin, size_t end, uint32_t) {
    const int64_t first = static_cast<int64_t>(begin) * unit;
    const int64_t size = std::min(static_cast<int64_t>(end) * unit, count) - first;
    const auto rows = static_cast<size_t>(by_outputs ? m : size);
    DotProduct<T> part = x;
    if (by_outputs) {
      part.task.b += first * k;
      part.task.n = size;
      if (part.task.bias) part.task.bias += first;
      part.c += first;
    }
    math::ForRows(part.a, part.c, static_cast<size_t>(x.ldc), by_outputs ? 0 : static_cast<size_t>(first),
                  rows, [&](size_t, const math::Rows<T>& of_rows) { Multiply(part.task, of_rows); });
  };
  const size_t grain = math::Grain(unit * k * (by_outputs ? m : n));
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

template void Multiply<float>(const DotTask<float>&, const math::Rows<float>&);
template void Multiply<double>(const DotTask<double>&, const math::Rows<double>&);
template void Multiply<float>(const DotProduct<float>&);
template void Multiply<double>(const DotProduct<double>&);
template void MultiplyParallel<float>(const fbx_host*, const DotProduct<float>&);
template void MultiplyParallel<double>(const fbx_host*, const DotProduct<double>&);
template void TransposeMatrix<float>(const float*, int64_t, int64_t, float*);
template void TransposeMatrix<double>(const double*, int64_t, int64_t, double*);
template void TransposeMatrix<int8_t>(const int8_t*, int64_t, int64_t, int8_t*);
template void TransposeMatrix<uint8_t>(const uint8_t*, int64_t, int64_t, uint8_t*);
template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
#endif
