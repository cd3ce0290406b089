// SPDX-License-Identifier: Apache-2.0
// ByteDot of bytes_dot-inl.h for arm64, which Highway 1.2 has no operation for. The dot product
// instruction is used by the code for NEON (simd_targets.h) and in builds for CPUs that have it.
#if defined(FUSEBOX_MATH_BYTE_DOT_ARM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_BYTE_DOT_ARM_INL_H_
#undef FUSEBOX_MATH_BYTE_DOT_ARM_INL_H_
#else
#define FUSEBOX_MATH_BYTE_DOT_ARM_INL_H_
#endif

#include <arm_neon.h>
#include <hwy/highway.h>

// The intrinsic needs a caller for Armv8.2.
#if HWY_TARGET == HWY_NEON && HWY_HAVE_RUNTIME_DISPATCH
#undef HWY_TARGET_STR
#define HWY_TARGET_STR "arch=armv8.2-a+crypto+dotprod"
#endif

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if defined(__ARM_FEATURE_DOTPROD) || HWY_TARGET == HWY_NEON
#define FUSEBOX_ARM_DOT 1
#else
#define FUSEBOX_ARM_DOT 0
#endif

// Loads vectors and moves `from` behind them: up to four by an instruction that also moves the pointer, if
// the compiler cannot compute all addresses from the first.
template <int kCount>
HWY_INLINE void LoadNext(const int8_t* HWY_RESTRICT& from, int8x16_t (&to)[kCount]) {
  constexpr int kRest = kCount % 4;
  const auto next = [&](int count) HWY_ATTR {
    from += 16 * count;
    __asm__("" : "+r"(from));
  };
#pragma GCC unroll 2
  for (int i = 0; i + 4 <= kCount; i += 4) {
    const int8x16x4_t four = vld1q_s8_x4(from);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) to[i + k] = four.val[k];
    next(4);
  }
  if constexpr (kRest > 0) {
#pragma GCC unroll 4
    for (int k = 0; k < kRest; ++k) to[kCount - kRest + k] = vld1q_s8(from + 16 * k);
    next(kRest);
  }
}

struct ByteDot {
  static constexpr size_t kUnit = 4;
  static constexpr bool kFlips = true;
  static constexpr bool kUnsignedRows = false;
  static constexpr int kRows = 4;
  static constexpr int kChains = 8;
  static constexpr bool kByLane = FUSEBOX_ARM_DOT;
  using RowBytes = int8x16_t;
  using WeightBytes = int8x16_t;
  using Sum = hn::Vec128<int32_t>;
  static HWY_INLINE int8x16_t Row(Sum bytes) { return vreinterpretq_s8_s32(bytes.raw); }
  static HWY_INLINE int8x16_t Weights(Sum bytes) { return vreinterpretq_s8_s32(bytes.raw); }
#if FUSEBOX_ARM_DOT
  static HWY_INLINE Sum Add(Sum sum, int8x16_t row, int8x16_t weights) {
    return Sum(vdotq_s32(sum.raw, weights, row));
  }
  template <int kLane>
  static HWY_INLINE Sum AddLane(Sum sum, int8x16_t row, int8x16_t weights) {
    return Sum(vdotq_laneq_s32(sum.raw, weights, row, kLane));
  }
#else
  static HWY_INLINE Sum Add(Sum sum, int8x16_t row, int8x16_t weights) {
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(row)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(weights, row));
    return Sum(vaddq_s32(sum.raw, vpaddq_s32(low, high)));
  }
#endif
};
#undef FUSEBOX_ARM_DOT

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
