// SPDX-License-Identifier: Apache-2.0
// Vectorizes a loop for the running CPU, although the build targets the baseline.
#pragma once

#include "plugins/math/simd/cpu.h"

namespace fusebox::cpu {

#if defined(__x86_64__) && !defined(FUSEBOX_WITHOUT_AVX2)

inline const bool kHasAvx2 = FUSEBOX_CPU_HAS(AVX2) && FUSEBOX_CPU_HAS(FMA);

template <class F>
__attribute__((target("avx2,fma"))) void RunWithAvx2(const F& f) {
  f();
}

// Runs f(), which is compiled twice. f and all functions called in its loops must be FUSEBOX_INLINE:
//   Vectorized([&]() FUSEBOX_INLINE { for (...) y[i] = F(x[i]); });
template <class F>
void Vectorized(const F& f) {
  if (kHasAvx2) return RunWithAvx2(f);
  f();
}

#else

template <class F>
void Vectorized(const F& f) {
  f();
}

#endif

#define FUSEBOX_INLINE __attribute__((always_inline))

// Runs f(), small code instead of fast code: for types that few models have.
#if defined(__clang__)
#define FUSEBOX_COMPACT_CODE __attribute__((noinline))
#else
#define FUSEBOX_COMPACT_CODE __attribute__((noinline, optimize("Os", "no-tree-vectorize")))
#endif
template <class F>
FUSEBOX_COMPACT_CODE void Compactly(const F& f) {
  f();
}

// Vectorizes loops over elements of T, but not over 64-bit ones, which are verification's (f64) and indices.
template <class T, class F>
void VectorizedFor(const F& f) {
  if constexpr (sizeof(T) == 8) Compactly(f);
  else Vectorized(f);
}

}  // namespace fusebox::cpu
