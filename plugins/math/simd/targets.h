// SPDX-License-Identifier: Apache-2.0
// Highway targets and the choice among them at run time. Include this before <hwy/foreach_target.h>.
//
// A file that is compiled once per target returns a table of its functions from Code(). It ends with
//   #if HWY_ONCE
//   std::vector<const Table*> Tables() { return FUSEBOX_SIMD_TABLES(Table, Code); }
//   #endif
//
// HWY_DYNAMIC_DISPATCH is not used: it needs Highway's shared library, which measures the clock for 2.5 ms
// when it is loaded, and every load of a plugin would pay for that.
#pragma once

#include <vector>

#include "plugins/math/simd/cpu.h"

// Arrays of vectors need a size that is known at compile time, which SVE and RVV do not have. The other
// targets differ from those left in integer ops, AES and conversions only.
// The targets that the build leaves out (FUSEBOX_SIMD_WITHOUT).
#ifdef FUSEBOX_WITHOUT_AVX3
#define FUSEBOX_DISABLED_AVX3 HWY_AVX3
#else
#define FUSEBOX_DISABLED_AVX3 0
#endif
#ifdef FUSEBOX_WITHOUT_AVX2
#define FUSEBOX_DISABLED_AVX2 HWY_AVX2
#else
#define FUSEBOX_DISABLED_AVX2 0
#endif
// Files that define FUSEBOX_FLOATS_ONLY have no use for SSE4, which adds integer ops to SSE2.
#if defined(FUSEBOX_WITHOUT_SSE4) || defined(FUSEBOX_FLOATS_ONLY)
#define FUSEBOX_DISABLED_SSE4 HWY_SSE4
#else
#define FUSEBOX_DISABLED_SSE4 0
#endif
// AVX3_DL, which has dot products of bytes, is compiled for files that define HWY_WANT_AVX3_DL only. On arm64
// these files are also compiled for NEON, which bytes_dot_arm-inl.h extends by dot products. Their
// CodeExtended() is the table for CPUs that have more than the target (ExtendedByteDot of bytes-inl.h): NEON
// with matrix products of bytes, AVX2 with dot products.
#ifdef FUSEBOX_WITHOUT_AVX3
#define FUSEBOX_DISABLED_AVX3_DL HWY_AVX3_DL
#else
#define FUSEBOX_DISABLED_AVX3_DL 0
#endif
#ifdef HWY_WANT_AVX3_DL
#define FUSEBOX_DISABLED_NEON 0
#else
#define FUSEBOX_DISABLED_NEON HWY_NEON
#endif
#define HWY_DISABLED_TARGETS                                                                         \
  (FUSEBOX_DISABLED_AVX3 | FUSEBOX_DISABLED_AVX2 | FUSEBOX_DISABLED_SSE4 | HWY_SSSE3 |               \
   FUSEBOX_DISABLED_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | FUSEBOX_DISABLED_NEON | HWY_NEON_BF16 | \
   HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/detect_targets.h>

#define FUSEBOX_HAS_AVX3                                                                 \
  (FUSEBOX_CPU_HAS(AVX512F) && FUSEBOX_CPU_HAS(AVX512VL) && FUSEBOX_CPU_HAS(AVX512DQ) && \
   FUSEBOX_CPU_HAS(AVX512BW) && FUSEBOX_CPU_HAS(AVX512CD) && FUSEBOX_CPU_HAS(AVX2))

#if HWY_TARGETS & HWY_AVX3_DL
#define FUSEBOX_SIMD_AVX3_DL(code)                                                                 \
  if (FUSEBOX_HAS_AVX3 && FUSEBOX_CPU_HAS(AVX512_VNNI) && FUSEBOX_CPU_HAS(AVX512_VBMI) &&          \
      FUSEBOX_CPU_HAS(AVX512_VBMI2) && FUSEBOX_CPU_HAS(AVX512_BITALG) &&                           \
      FUSEBOX_CPU_HAS(AVX512_VPOPCNTDQ) && FUSEBOX_CPU_HAS(VPCLMULQDQ) && FUSEBOX_CPU_HAS(VAES) && \
      FUSEBOX_CPU_HAS(GFNI))                                                                       \
    tables.push_back(&N_AVX3_DL::code());
#else
#define FUSEBOX_SIMD_AVX3_DL(code)
#endif

#if HWY_TARGETS & HWY_AVX3
#define FUSEBOX_SIMD_AVX3(code) \
  if (FUSEBOX_HAS_AVX3) tables.push_back(&N_AVX3::code());
#else
#define FUSEBOX_SIMD_AVX3(code)
#endif

#define FUSEBOX_HAS_AVX2 (FUSEBOX_CPU_HAS(AVX2) && FUSEBOX_CPU_HAS(FMA) && FUSEBOX_CPU_HAS(BMI2))

#if (HWY_TARGETS & HWY_AVX2) && defined(HWY_WANT_AVX3_DL)
#define FUSEBOX_SIMD_AVX2(code)                                                 \
  if (FUSEBOX_HAS_AVX2) {                                                       \
    if (FUSEBOX_CPU_HAS(AVX_VNNI)) tables.push_back(&N_AVX2::code##Extended()); \
    tables.push_back(&N_AVX2::code());                                          \
  }
#elif HWY_TARGETS & HWY_AVX2
#define FUSEBOX_SIMD_AVX2(code) \
  if (FUSEBOX_HAS_AVX2) tables.push_back(&N_AVX2::code());
#else
#define FUSEBOX_SIMD_AVX2(code)
#endif

#if HWY_TARGETS & HWY_SSE4
#define FUSEBOX_SIMD_SSE4(code)                                                      \
  if (FUSEBOX_CPU_HAS(SSE4_2) && FUSEBOX_CPU_HAS(PCLMULQDQ) && FUSEBOX_CPU_HAS(AES)) \
    tables.push_back(&N_SSE4::code());
#else
#define FUSEBOX_SIMD_SSE4(code)
#endif

#if (HWY_TARGETS & HWY_NEON) && !(HWY_BASELINE_TARGETS & HWY_NEON)
#include <sys/auxv.h>

// Bits of Linux' AT_HWCAP: cryptography (3 to 6), CRC32, atomics and rounding doubling multiplication, which
// Armv8.2 has, and dot products; of AT_HWCAP2: matrix products of bytes.
#define FUSEBOX_SIMD_NEON(code)                                                                  \
  if (constexpr unsigned long kNeeds = 0xFUL << 3 | 1UL << 7 | 1UL << 8 | 1UL << 12 | 1UL << 20; \
      (getauxval(AT_HWCAP) & kNeeds) == kNeeds) {                                                \
    if (getauxval(AT_HWCAP2) >> 13 & 1) tables.push_back(&N_NEON::code##Extended());             \
    tables.push_back(&N_NEON::code());                                                           \
  }
#else
#define FUSEBOX_SIMD_NEON(code)
#endif

// The tables of the targets that this machine supports, best first.
#define FUSEBOX_SIMD_TABLES(Table, code)            \
  [] {                                              \
    std::vector<const Table*> tables;               \
    FUSEBOX_SIMD_AVX3_DL(code)                      \
    FUSEBOX_SIMD_AVX3(code)                         \
    FUSEBOX_SIMD_AVX2(code)                         \
    FUSEBOX_SIMD_SSE4(code)                         \
    FUSEBOX_SIMD_NEON(code)                         \
    tables.push_back(&HWY_STATIC_DISPATCH(code)()); \
    return tables;                                  \
  }()

namespace fusebox::math {

// The table in use: the best, or one set by a test. Tests set it while no kernel is created or run.
template <class Table, std::vector<const Table*> (*kTables)()>
struct SimdChoice {
  static const Table& Best() {
    static const Table* const best = kTables().front();
    return for_test ? *for_test : *best;
  }
  static inline const Table* for_test = nullptr;
};

}  // namespace fusebox::math
