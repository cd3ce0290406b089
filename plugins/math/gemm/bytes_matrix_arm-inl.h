// SPDX-License-Identifier: Apache-2.0
// Products of bytes by the matrix instructions of Armv8.6 (i8mm), for weights in units of eight columns
// (byte_product.h). Part of the code for NEON; the functions are compiled for more and called where the CPU
// has it. Vectors of 32 or 64 bytes (SVE) read a unit of a group in four or two loads.
#if defined(FUSEBOX_MATH_BYTE_MATRIX_ARM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_BYTE_MATRIX_ARM_INL_H_
#undef FUSEBOX_MATH_BYTE_MATRIX_ARM_INL_H_
#else
#define FUSEBOX_MATH_BYTE_MATRIX_ARM_INL_H_
#endif

#include <arm_neon.h>
#include <arm_sve.h>
#include <hwy/highway.h>
#include <sys/auxv.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "plugins/math/gemm/bytes_dot_arm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {

#define FUSEBOX_MATRIX __attribute__((target("arch=armv8.2-a+crypto+dotprod+i8mm")))
#define FUSEBOX_SVE __attribute__((target("arch=armv8.2-a+crypto+dotprod+i8mm+sve")))
#define FUSEBOX_SVE_INLINE __attribute__((always_inline)) FUSEBOX_SVE

constexpr int kMatrixRows = 4;
using MatrixRows = const uint8_t* const[kMatrixRows];

HWY_INLINE uint64_t EightBytes(const uint8_t* from, size_t count = 8) {
  uint64_t eight = 0;
  std::memcpy(&eight, from, count);
  return eight;
}

// Up to sixteen bytes; those beyond are zeros before they are flipped.
template <bool kAll>
HWY_INLINE int64x2_t SixteenBytes(const uint8_t* from, size_t count, uint8x16_t flip) {
  uint8_t sixteen[16] = {};
  if (!kAll) std::memcpy(sixteen, from, count);
  return vreinterpretq_s64_u8(veorq_u8(vld1q_u8(kAll ? from : sixteen), flip));
}
HWY_INLINE int8x16_t FirstEights(int64x2_t a, int64x2_t b) { return vreinterpretq_s8_s64(vzip1q_s64(a, b)); }
HWY_INLINE int8x16_t SecondEights(int64x2_t a, int64x2_t b) { return vreinterpretq_s8_s64(vzip2q_s64(a, b)); }

// Sums of pairs of rows and of outputs.
template <int kPanels>
using PairSums = int32x4_t[2][2 * kPanels];

// Returns how many vectors of weights, from one on, have registers.
constexpr int VectorsAt(int first, int count) { return std::min(4, count - first); }

template <int kPanels, int kFirst = 0>
FUSEBOX_MATRIX HWY_INLINE void MultiplyUnit(int8x16_t first, int8x16_t second,
                                            const int8_t* HWY_RESTRICT& weights, PairSums<kPanels>& sums) {
  if constexpr (kFirst < 2 * kPanels) {
    constexpr int kCount = VectorsAt(kFirst, 2 * kPanels);
    int8x16_t w[kCount];
    LoadNext(weights, w);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) {
      sums[0][kFirst + i] = vmmlaq_s32(sums[0][kFirst + i], first, w[i]);
      sums[1][kFirst + i] = vmmlaq_s32(sums[1][kFirst + i], second, w[i]);
    }
    MultiplyUnit<kPanels, kFirst + 4>(first, second, weights, sums);
  }
}

// Up to two units.
template <int kPanels, bool kAll>
FUSEBOX_MATRIX HWY_INLINE void MultiplyUnits(MatrixRows& rows, size_t k, size_t left, uint8x16_t flip,
                                             const int8_t* HWY_RESTRICT& weights, PairSums<kPanels>& sums) {
  const int64x2_t a = SixteenBytes<kAll>(rows[0] + k, left, flip);
  const int64x2_t b = SixteenBytes<kAll>(rows[1] + k, left, flip);
  const int64x2_t c = SixteenBytes<kAll>(rows[2] + k, left, flip);
  const int64x2_t d = SixteenBytes<kAll>(rows[3] + k, left, flip);
  MultiplyUnit<kPanels>(FirstEights(a, b), FirstEights(c, d), weights, sums);
  if (kAll || left > 8) MultiplyUnit<kPanels>(SecondEights(a, b), SecondEights(c, d), weights, sums);
}

// From vectors of two rows to pairs of outputs, or back.
HWY_INLINE void SwapHalves(int32x4_t a, int32x4_t b, int32x4_t& first, int32x4_t& second) {
  const int64x2_t even = vreinterpretq_s64_s32(a);
  const int64x2_t odd = vreinterpretq_s64_s32(b);
  first = vreinterpretq_s32_s64(vzip1q_s64(even, odd));
  second = vreinterpretq_s32_s64(vzip2q_s64(even, odd));
}

// sums[row][output] += products
template <int kPanels>
FUSEBOX_MATRIX HWY_NOINLINE void AddMatrixProducts(MatrixRows& rows, size_t columns, bool flipped,
                                                   const int8_t* HWY_RESTRICT weights,
                                                   int32_t* HWY_RESTRICT sums) {
  constexpr size_t kWidth = 4 * kPanels;
  const uint8x16_t flip = vdupq_n_u8(flipped ? 0x80 : 0);
  PairSums<kPanels> pairs;
#pragma GCC unroll 2
  for (int pair = 0; pair < 2; ++pair) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const int32_t* const at = sums + 2 * pair * kWidth + 4 * p;
      SwapHalves(vld1q_s32(at), vld1q_s32(at + kWidth), pairs[pair][2 * p], pairs[pair][2 * p + 1]);
    }
  }
  const size_t whole = columns / 16 * 16;
  for (size_t k = 0; k != whole; k += 16) MultiplyUnits<kPanels, true>(rows, k, 16, flip, weights, pairs);
  if (whole < columns) MultiplyUnits<kPanels, false>(rows, whole, columns - whole, flip, weights, pairs);
#pragma GCC unroll 2
  for (int pair = 0; pair < 2; ++pair) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      int32_t* const at = sums + 2 * pair * kWidth + 4 * p;
      int32x4_t even, odd;
      SwapHalves(pairs[pair][2 * p], pairs[pair][2 * p + 1], even, odd);
      vst1q_s32(at, even);
      vst1q_s32(at + kWidth, odd);
    }
  }
}

template <int kPanels, int kFirst = 0>
HWY_INLINE void DotUnit(int8x16_t x, const int8_t* HWY_RESTRICT& weights, int32x4_t (&sums)[2 * kPanels]) {
  if constexpr (kFirst < 2 * kPanels) {
    constexpr int kCount = VectorsAt(kFirst, 2 * kPanels);
    int8x16_t w[kCount];
    LoadNext(weights, w);
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) sums[kFirst + i] = vdotq_s32(sums[kFirst + i], w[i], x);
    DotUnit<kPanels, kFirst + 4>(x, weights, sums);
  }
}

// AddMatrixProducts of one row: dot products, because a matrix instruction would multiply as many weights.
template <int kPanels>
HWY_NOINLINE void AddUnitProducts(const uint8_t* row, size_t columns, bool flipped,
                                  const int8_t* HWY_RESTRICT weights, int32_t* HWY_RESTRICT sums) {
  const uint8x16_t flip = vdupq_n_u8(flipped ? 0x80 : 0);
  int32x4_t pairs[2 * kPanels];
#pragma GCC unroll 8
  for (int32x4_t& pair : pairs) pair = vdupq_n_s32(0);
  const auto add = [&](int8x16_t x) HWY_ATTR { DotUnit<kPanels>(x, weights, pairs); };
  for (size_t i = columns / 16; i > 0; --i, row += 16) {
    const int64x2_t x = SixteenBytes<true>(row, 16, flip);
    add(FirstEights(x, x));
    add(SecondEights(x, x));
  }
  if (const size_t left = columns % 16; left > 0) {
    const int64x2_t x = SixteenBytes<false>(row, left, flip);
    add(FirstEights(x, x));
    if (left > 8) add(SecondEights(x, x));
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p)
    vst1q_s32(sums + 4 * p, vaddq_s32(vld1q_s32(sums + 4 * p), vpaddq_s32(pairs[2 * p], pairs[2 * p + 1])));
}

// Bytes of the vectors that the functions below use, which read groups of four panels; 0: none.
FUSEBOX_SVE HWY_NOINLINE inline size_t VectorBytes() { return svcntb(); }
inline const size_t wide_vectors = [] {  // Linux' AT_HWCAP: SVE; AT_HWCAP2: its matrix instructions
  if ((getauxval(AT_HWCAP) >> 22 & 1) == 0 || (getauxval(AT_HWCAP2) >> 9 & 1) == 0) return size_t{0};
  const size_t bytes = VectorBytes();
  return bytes == 32 || bytes == 64 ? bytes : 0;
}();

FUSEBOX_SVE HWY_INLINE void AddWide(svint32_t first, svint32_t second, bool rows, int32_t* even,
                                    int32_t* odd) {
  const svbool_t all = svptrue_b32();
  if (rows) {
    const svint64_t a = svreinterpret_s64(first);
    const svint64_t b = svreinterpret_s64(second);
    svst1(all, even, svadd_x(all, svld1(all, even), svreinterpret_s32(svuzp1(a, b))));
    svst1(all, odd, svadd_x(all, svld1(all, odd), svreinterpret_s32(svuzp2(a, b))));
  } else {
    const svint32_t sum = svadd_x(all, svuzp1(first, second), svuzp2(first, second));
    svst1(all, even, svadd_x(all, svld1(all, even), sum));
  }
}

// AddUnitProducts of four panels with vectors of kBytes.
template <size_t kBytes>
FUSEBOX_SVE HWY_NOINLINE void AddWideUnits(const uint8_t* row, size_t columns,
                                           const int8_t* HWY_RESTRICT weights, int32_t* HWY_RESTRICT sums) {
  constexpr int kUnit = 128 / kBytes;  // vectors
  const svbool_t all = svptrue_b8();
  for (size_t part = 0; part < 128; part += 2 * kBytes, sums += kBytes / 4) {
    const int8_t* w = weights + part;
    svint32_t a = svdup_s32(0);
    svint32_t b = a;
    svint32_t c = a;
    svint32_t d = a;
    const auto eight = [](uint64_t x) FUSEBOX_SVE { return svreinterpret_s8(svdup_u64(x)); };
    const auto sixteen = [&](const uint8_t* from, int first) FUSEBOX_SVE_INLINE {
      const svint8_t x = eight(EightBytes(from));
      const svint8_t y = eight(EightBytes(from + 8));
      a = svdot(a, svld1_vnum(all, w, first), x);
      b = svdot(b, svld1_vnum(all, w, first + 1), x);
      c = svdot(c, svld1_vnum(all, w, first + kUnit), y);
      d = svdot(d, svld1_vnum(all, w, first + kUnit + 1), y);
    };
    const uint8_t* at = row;
    const uint8_t* const end = row + columns;
    for (const uint8_t* const whole = row + columns / 32 * 32; at != whole; at += 32, w += 512) {
      sixteen(at, 0);
      sixteen(at + 16, 2 * kUnit);
    }
    if (end - at >= 16) {
      sixteen(at, 0);
      at += 16;
      w += 256;
    }
    for (; at < end; at += 8, w += 128) {
      const svint8_t x = eight(EightBytes(at, std::min<size_t>(8, static_cast<size_t>(end - at))));
      a = svdot(a, svld1(all, w), x);
      b = svdot(b, svld1_vnum(all, w, 1), x);
    }
    AddWide(svadd_x(all, a, c), svadd_x(all, b, d), false, sums, nullptr);
  }
}

// AddMatrixProducts of four panels with vectors of kBytes.
template <size_t kBytes>
FUSEBOX_SVE HWY_NOINLINE void AddWideMatrixProducts(MatrixRows& rows, size_t columns,
                                                    const int8_t* HWY_RESTRICT weights,
                                                    int32_t* HWY_RESTRICT sums) {
  constexpr int kUnit = 128 / kBytes;  // vectors
  const svbool_t all = svptrue_b8();
  for (size_t part = 0; part < 128; part += 2 * kBytes, sums += kBytes / 4) {
    const int8_t* w = weights + part;
    svint32_t a = svdup_s32(0);
    svint32_t b = a;
    svint32_t c = a;
    svint32_t d = a;
    const auto multiply = [&](svint64_t first, svint64_t second, svint8_t v, svint8_t u) FUSEBOX_SVE {
      const svint8_t x = svreinterpret_s8(first);
      const svint8_t y = svreinterpret_s8(second);
      a = svmmla(a, x, v);
      b = svmmla(b, x, u);
      c = svmmla(c, y, v);
      d = svmmla(d, y, u);
    };
    const auto* const first = reinterpret_cast<const int64_t*>(rows[0]);
    const auto* const second = reinterpret_cast<const int64_t*>(rows[1]);
    const auto* const third = reinterpret_cast<const int64_t*>(rows[2]);
    const auto* const fourth = reinterpret_cast<const int64_t*>(rows[3]);
    for (size_t i = 0; i != columns / 16 * 2; i += 2, w += 256) {
      const svint64_t p = svld1rq(all, first + i);
      const svint64_t q = svld1rq(all, second + i);
      const svint64_t r = svld1rq(all, third + i);
      const svint64_t s = svld1rq(all, fourth + i);
      multiply(svtrn1(p, q), svtrn1(r, s), svld1(all, w), svld1_vnum(all, w, 1));
      multiply(svtrn2(p, q), svtrn2(r, s), svld1_vnum(all, w, kUnit), svld1_vnum(all, w, kUnit + 1));
    }
    for (size_t k = columns / 16 * 16; k < columns; k += 8, w += 128) {
      const auto eight = [&](int row) FUSEBOX_SVE {
        return svreinterpret_s64(svdup_u64(EightBytes(rows[row] + k, std::min<size_t>(8, columns - k))));
      };
      multiply(svtrn1(eight(0), eight(1)), svtrn1(eight(2), eight(3)), svld1(all, w), svld1_vnum(all, w, 1));
    }
    AddWide(a, b, true, sums, sums + 16);
    AddWide(c, d, true, sums + 32, sums + 48);
  }
}

// sums[row][output] += products of one or four rows with a group.
template <int kPanels>
HWY_INLINE void AddUnits(MatrixRows& rows, size_t count, size_t columns, bool flipped, const int8_t* weights,
                         int32_t* sums) {
  if constexpr (kPanels == 4) {
    const size_t wide = flipped ? 0 : wide_vectors;
    const auto run = [&]<size_t kBytes>() {
      return count == 1 ? AddWideUnits<kBytes>(rows[0], columns, weights, sums)
                        : AddWideMatrixProducts<kBytes>(rows, columns, weights, sums);
    };
    if (wide == 64) return run.template operator()<64>();
    if (wide == 32) return run.template operator()<32>();
  }
  return count == 1 ? AddUnitProducts<kPanels>(rows[0], columns, flipped, weights, sums)
                    : AddMatrixProducts<kPanels>(rows, columns, flipped, weights, sums);
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
