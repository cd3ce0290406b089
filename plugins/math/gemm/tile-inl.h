// SPDX-License-Identifier: Apache-2.0
// Shapes of the tiles that micro-kernels of f32 compute. Compiled once per target.
#if defined(FUSEBOX_MATH_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_GEMM_TILE_INL_H_
#undef FUSEBOX_MATH_GEMM_TILE_INL_H_
#else
#define FUSEBOX_MATH_GEMM_TILE_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {

// Rows that share each load of a weight: as many as there are registers for their sums.
constexpr bool kNeon = (HWY_TARGET & HWY_ALL_NEON) != 0;
constexpr int kMaxTileRows = kNeon ? 4 : HWY_TARGET <= HWY_AVX3 ? 6 : 3;
// The same for tiles of fewer panels than four, whose rows' addresses need registers as well.
template <int kPanels>
constexpr int kTileRows = kPanels == 1   ? 8
                          : kPanels == 2 ? (kMaxTileRows > 3 ? 8 : 6)
                                         : kMaxTileRows * 4 / 3;
template <>
constexpr int kTileRows<4> = kMaxTileRows;

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
