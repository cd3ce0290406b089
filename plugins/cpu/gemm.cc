// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "plugins/cpu/simd.h"

namespace fusebox::cpu {
namespace {

// A block of b (kBlockColumns rows of kBlockDepth elements) stays in the L2 cache while all of a is
// processed.
constexpr int64_t kBlockColumns = 64, kBlockDepth = 768;
constexpr int64_t kTaskRows = 128;
constexpr int64_t kTaskWork = 16 * 1024;  // minimum multiply-adds per task

template <class T, int kBytes>
struct Vector {
  typedef T Register __attribute__((vector_size(kBytes)));
  typedef T Memory __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
  static constexpr int kLanes = kBytes / sizeof(T);

  // Loads `count` < kLanes elements; the rest is zero. (By reference, because passing registers by value
  // depends on the target.)
  [[gnu::always_inline]] static inline void LoadSome(const T* from, int64_t count, Register& v) {
    v = Register{};
    for (int lane = 0; lane + 1 < kLanes; ++lane) v[lane] = lane < count ? from[lane] : T(0);
  }
  [[gnu::always_inline]] static inline T Total(const Register& v) {
    if constexpr (kLanes == 2) {
      return v[0] + v[1];
    } else {
      using Half = Vector<T, kBytes / 2>;
      typename Half::Register low, high;
      std::memcpy(&low, &v, sizeof(low));
      std::memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
      low += high;
      return Half::Total(low);
    }
  }
};

// Adds the products of kRows rows of a and kColumns rows of b to c: as many sums as fit in registers, each
// with kLanes partial sums over the depth.
template <class T, int kBytes, int kRows, int kColumns>
[[gnu::always_inline]] inline void Tile(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t k, T* c,
                                        int64_t ldc) {
  using V = Vector<T, kBytes>;
  typename V::Register sums[kRows][kColumns] = {};
  int64_t p = 0;
  for (; p + V::kLanes <= k; p += V::kLanes) {
    typename V::Register column[kColumns];
    for (int j = 0; j < kColumns; ++j)
      column[j] = *reinterpret_cast<const typename V::Memory*>(b + j * ldb + p);
    for (int i = 0; i < kRows; ++i) {
      const typename V::Register row = *reinterpret_cast<const typename V::Memory*>(a + i * lda + p);
      for (int j = 0; j < kColumns; ++j) sums[i][j] += row * column[j];
    }
  }
  if (p < k) {
    typename V::Register column[kColumns];
    for (int j = 0; j < kColumns; ++j) V::LoadSome(b + j * ldb + p, k - p, column[j]);
    for (int i = 0; i < kRows; ++i) {
      typename V::Register row;
      V::LoadSome(a + i * lda + p, k - p, row);
      for (int j = 0; j < kColumns; ++j) sums[i][j] += row * column[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) c[i * ldc + j] += V::Total(sums[i][j]);
  }
}

template <class T, int kBytes, int kRows>
[[gnu::always_inline]] inline void Strip(const T* a, int64_t lda, const T* b, int64_t ldb, int64_t n,
                                         int64_t k, T* c, int64_t ldc) {
  int64_t j = 0;
  for (; j + 3 <= n; j += 3) Tile<T, kBytes, kRows, 3>(a, lda, b + j * ldb, ldb, k, c + j, ldc);
  for (; j < n; ++j) Tile<T, kBytes, kRows, 1>(a, lda, b + j * ldb, ldb, k, c + j, ldc);
}

template <class T, int kBytes>
[[gnu::always_inline]] inline void Block(const RowProduct<T>& x) {
  const int64_t depth = x.m < 4 ? std::max<int64_t>(x.k, 1) : kBlockDepth;
  for (int64_t j = 0; j < x.n; j += kBlockColumns) {
    const int64_t n = std::min(kBlockColumns, x.n - j);
    for (int64_t i = 0; i < x.m; ++i) std::fill_n(x.c + i * x.ldc + j, n, T(0));
    for (int64_t p = 0; p < x.k; p += depth) {
      const int64_t k = std::min(depth, x.k - p);
      const T* b = x.b + j * x.ldb + p;
      int64_t i = 0;
      for (; i + 4 <= x.m; i += 4)
        Strip<T, kBytes, 4>(x.a + i * x.lda + p, x.lda, b, x.ldb, n, k, x.c + i * x.ldc + j, x.ldc);
      for (; i < x.m; ++i)
        Strip<T, kBytes, 1>(x.a + i * x.lda + p, x.lda, b, x.ldb, n, k, x.c + i * x.ldc + j, x.ldc);
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

template <class T>
void BlockBaseline(const RowProduct<T>& x) {
  Block<T, 16>(x);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) void BlockAvx2(const RowProduct<T>& x) {
  Block<T, 32>(x);
}

#endif

}  // namespace

template <class T>
void Multiply(const RowProduct<T>& product) {
#if defined(__x86_64__)
  if (kHasAvx2) return BlockAvx2(product);
#endif
  BlockBaseline(product);
}

template <class T>
void MultiplyParallel(const fbx_host* host, const RowProduct<T>& x) {
  const bool by_columns = x.m < 4 * kTaskRows && x.n >= x.m;
  const int64_t unit = by_columns ? kBlockColumns : kTaskRows;
  const int64_t units = ((by_columns ? x.n : x.m) + unit - 1) / unit;
  const int64_t work = std::max<int64_t>(1, unit * x.k * (by_columns ? x.m : x.n));
  const size_t grain = static_cast<size_t>(std::max<int64_t>(1, kTaskWork / work));
  parallel_for(host, static_cast<size_t>(units), grain, [&](size_t begin, size_t end, uint32_t) {
    // Unit by unit, because the block depth depends on the number of rows per call.
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
  constexpr int64_t kEdge = 16;  // both squares fit in the L1 cache
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
template void TransposeMatrix<int16_t>(const int16_t*, int64_t, int64_t, int16_t*);

}  // namespace fusebox::cpu
