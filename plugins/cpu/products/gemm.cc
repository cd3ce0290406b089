// SPDX-License-Identifier: Apache-2.0
#define FUSEBOX_FLOATS_ONLY
#include "plugins/cpu/products/gemm.h"

#include <algorithm>
#include <type_traits>

#include "plugins/math/costs.h"
#include "plugins/math/parallel.h"
#include "plugins/math/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/products/gemm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A block of b (kBlockColumns rows of kBlockDepth elements) stays in the L2 cache while all of a is read.
constexpr int64_t kBlockColumns = 64;
constexpr int64_t kBlockDepth = 768;

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

// Adds the products of kRows rows of a and kColumns rows of b to c: as many sums as fit in registers, each of
// as many partial sums over the depth as there are lanes.
template <class T, int kRows, int kColumns>
HWY_INLINE void Tile(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t k, T* c, int64_t ldc) {
  using D = hn::CappedTag<T, 32 / sizeof(T)>;
  using V = hn::Vec<D>;
  constexpr D d;
  constexpr int64_t kLanes = HWY_MAX_LANES_D(D);
  V sums[kRows][kColumns];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kColumns; ++j) sums[i][j] = hn::Zero(d);
  }
  const auto add = [&](const auto& load) HWY_ATTR {
    V column[kColumns];
#pragma GCC unroll 3
    for (int j = 0; j < kColumns; ++j) column[j] = load(b + j * ldb);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const V row = load(a + i * lda);
#pragma GCC unroll 3
      for (int j = 0; j < kColumns; ++j) sums[i][j] = hn::MulAdd(row, column[j], sums[i][j]);
    }
  };
  int64_t p = 0;
  for (; p + kLanes <= k; p += kLanes) add([&](const T* from) HWY_ATTR { return hn::LoadU(d, from + p); });
  const auto rest = static_cast<size_t>(k - p);
  if (rest > 0) add([&](const T* from) HWY_ATTR { return hn::LoadN(d, from + p, rest); });
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < kColumns; ++j) c[i * ldc + j] += Total(d, sums[i][j]);
  }
}

template <class T, int kRows>
HWY_INLINE void Strip(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t n, int64_t k, T* c,
                      int64_t ldc) {
  int64_t j = 0;
  for (; j + 3 <= n; j += 3) Tile<T, kRows, 3>(a, lda, b + j * ldb, ldb, k, c + j, ldc);
  for (; j < n; ++j) Tile<T, kRows, 1>(a, lda, b + j * ldb, ldb, k, c + j, ldc);
}

template <class T>
void Block(const RowProduct<T>& x) {
  const int64_t depth = x.m < 4 ? std::max<int64_t>(x.k, 1) : kBlockDepth;
  for (int64_t j = 0; j < x.n; j += kBlockColumns) {
    const int64_t n = std::min(kBlockColumns, x.n - j);
    for (int64_t i = 0; i < x.m; ++i) std::fill_n(x.c + i * x.ldc + j, n, T(0));
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t k = std::min(depth, x.k - p);
      const T* b = x.b + j * x.ldb + p;
      int64_t i = 0;
      for (; i + 4 <= x.m; i += 4)
        Strip<T, 4>(x.a + i * x.lda + p, x.lda, b, x.ldb, n, k, x.c + i * x.ldc + j, x.ldc);
      for (; i < x.m; ++i)
        Strip<T, 1>(x.a + i * x.lda + p, x.lda, b, x.ldb, n, k, x.c + i * x.ldc + j, x.ldc);
    }
    for (int64_t i = 0; i < x.m; ++i) {
      T* c = x.c + i * x.ldc + j;
      if (x.bias) {
        for (int64_t q = 0; q < n; ++q) c[q] += x.bias[j + q];
      }
      Activate(x.activation, c, static_cast<size_t>(n));
    }
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

constexpr int64_t kUnitColumns = 64;  // MultiplyParallel: columns or rows of a unit
constexpr int64_t kTaskRows = 128;

}  // namespace

std::vector<const DotKernels*> AllDotKernels() { return FUSEBOX_SIMD_TABLES(DotKernels, Code); }

template <class T>
void Multiply(const RowProduct<T>& product) {
  const DotKernels& code = math::SimdChoice<DotKernels, AllDotKernels>::Best();
  if constexpr (std::is_same_v<T, float>) code.f32(product);
  else code.f64(product);
}

template <class T>
void MultiplyParallel(const fbx_host* host, const RowProduct<T>& x) {
  const bool by_columns = x.m < 4 * kTaskRows && x.n >= x.m;
  const int64_t unit = by_columns ? kUnitColumns : kTaskRows;
  const int64_t units = ((by_columns ? x.n : x.m) + unit - 1) / unit;
  const size_t grain = math::Grain(unit * x.k * (by_columns ? x.m : x.n));
  math::ParallelFor(host, static_cast<size_t>(units), grain, [&](size_t begin, size_t end, uint32_t) {
    // Unit by unit, since the depth of a block depends on the rows of a call.
    for (int64_t u = static_cast<int64_t>(begin); u < static_cast<int64_t>(end); ++u) {
      RowProduct<T> part = x;
      const int64_t first = u * unit;
      if (by_columns) {
        part.b += first * x.ldb;
        part.c += first;
        if (part.bias) part.bias += first;
        part.n = std::min(unit, x.n - first);
      } else {
        part.a += first * x.lda;
        part.c += first * x.ldc;
        part.m = std::min(unit, x.m - first);
      }
      Multiply(part);
    }
  });
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

template void Multiply<float>(const RowProduct<float>&);
template void Multiply<double>(const RowProduct<double>&);
template void MultiplyParallel<float>(const fbx_host*, const RowProduct<float>&);
template void MultiplyParallel<double>(const fbx_host*, const RowProduct<double>&);
template void TransposeMatrix<float>(const float*, int64_t, int64_t, float*);
template void TransposeMatrix<double>(const double*, int64_t, int64_t, double*);
template void TransposeMatrix<int8_t>(const int8_t*, int64_t, int64_t, int8_t*);
template void TransposeMatrix<uint8_t>(const uint8_t*, int64_t, int64_t, uint8_t*);
template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
#endif
