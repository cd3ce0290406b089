// SPDX-License-Identifier: Apache-2.0
// Dot products of four adjacent bytes, for bytes-inl.h. Compiled once per target.
#if defined(FUSEBOX_MATH_BYTE_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_BYTE_DOT_INL_H_
#undef FUSEBOX_MATH_BYTE_DOT_INL_H_
#else
#define FUSEBOX_MATH_BYTE_DOT_INL_H_
#endif

#include <hwy/highway.h>

#if HWY_ARCH_ARM_A64
#include "plugins/math/gemm/bytes_dot_arm-inl.h"
#endif
#undef FUSEBOX_BYTE_MATRIX
#if HWY_TARGET == HWY_NEON && HWY_HAVE_RUNTIME_DISPATCH
#include "plugins/math/gemm/bytes_matrix_arm-inl.h"
#define FUSEBOX_BYTE_MATRIX 1
#else
#define FUSEBOX_BYTE_MATRIX 0
#endif
#undef FUSEBOX_BYTE_EXTENSION
#define FUSEBOX_BYTE_EXTENSION (FUSEBOX_BYTE_MATRIX || HWY_TARGET == HWY_AVX2)

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ByteSumTag = hn::CappedTag<int32_t, 16>;
using ByteSum = hn::Vec<ByteSumTag>;
constexpr ByteSumTag byte_sums{};
constexpr size_t kByteLanes = HWY_MAX_LANES_D(ByteSumTag);

// Adds to each lane the products of four adjacent bytes: Dot::Add(sum, row, weights), where row and weights
// are made of the four bytes of each lane by Dot::Row and Dot::Weights. ByteDot is what every CPU of this
// target has; ExtendedByteDot, if FUSEBOX_BYTE_EXTENSION, what some of them have besides. Both flip rows
// where the task says so, which takes a fifth of the time of large tiles; AsStored<Dot> requires tasks
// without.
#if HWY_ARCH_X86
// The bytes as the instruction reads them.
struct WholeBytes {
  static constexpr size_t kUnit = 4;  // columns of the weights' layout
  static constexpr bool kFlips = true;
  static constexpr bool kUnsignedRows = true;
  static constexpr int kChains = 8;       // independent sums that hide the latency
  static constexpr bool kByLane = false;  // has AddLane, for rows of sixteen bytes
  static constexpr hn::Repartition<uint8_t, ByteSumTag> du{};
  static constexpr hn::Repartition<int8_t, ByteSumTag> di{};
  using RowBytes = hn::Vec<decltype(du)>;
  using WeightBytes = hn::Vec<decltype(di)>;
  static HWY_INLINE RowBytes Row(ByteSum bytes) { return hn::BitCast(du, bytes); }
  static HWY_INLINE WeightBytes Weights(ByteSum bytes) { return hn::BitCast(di, bytes); }
};
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
struct ByteDot : WholeBytes {
  static constexpr int kRows = 6;  // that share each load of weights: as many as there are registers
  static HWY_INLINE ByteSum Add(ByteSum sum, RowBytes row, WeightBytes weights) {
    return hn::SumOfMulQuadAccumulate(byte_sums, row, weights, sum);
  }
};
#elif !HWY_ARCH_ARM_A64
// The even and the odd bytes, widened: products of 16-bit pairs.
struct ByteDot {
  static constexpr size_t kUnit = 4;
  static constexpr bool kFlips = true;
  static constexpr bool kUnsignedRows = true;
  static constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
  static constexpr int kChains = 4;
  static constexpr bool kByLane = false;
  static constexpr hn::Repartition<int16_t, ByteSumTag> dw{};
  static constexpr hn::RebindToUnsigned<decltype(dw)> du{};
  struct Pairs {
    hn::Vec<decltype(dw)> even, odd;
  };
  using RowBytes = Pairs;
  using WeightBytes = Pairs;
  static HWY_INLINE Pairs Row(ByteSum bytes) {
    const auto words = hn::BitCast(du, bytes);
    return {hn::BitCast(dw, hn::And(words, hn::Set(du, 0xFF))), hn::BitCast(dw, hn::ShiftRight<8>(words))};
  }
  static HWY_INLINE Pairs Weights(ByteSum bytes) {
    const auto words = hn::BitCast(dw, bytes);
    return {hn::ShiftRight<8>(hn::ShiftLeft<8>(words)), hn::ShiftRight<8>(words)};
  }
  static HWY_INLINE ByteSum Add(ByteSum sum, const Pairs& row, const Pairs& weights) {
    const auto even = hn::WidenMulPairwiseAdd(byte_sums, row.even, weights.even);
    const auto odd = hn::WidenMulPairwiseAdd(byte_sums, row.odd, weights.odd);
    return hn::Add(sum, hn::Add(even, odd));
  }
};
#endif

#if FUSEBOX_BYTE_MATRIX
// Matrix products, which read weights in another layout. 4-bit and depthwise weights have no use for them.
struct ExtendedByteDot : ByteDot {
  static constexpr size_t kUnit = 8;
};
#elif FUSEBOX_BYTE_EXTENSION
// AVX-VNNI. Highway has no target for it, and the intrinsic needs a caller that is compiled for it.
struct ExtendedByteDot : WholeBytes {
  static constexpr int kRows = 3;
  static HWY_INLINE ByteSum Add(ByteSum sum, RowBytes row, WeightBytes weights) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(row.raw), "x"(weights.raw));
    return sum;
  }
};
#endif

template <class Dot>
struct AsStored : Dot {
  static constexpr bool kFlips = false;
};
struct NoFlip {};

HWY_INLINE ByteSum Flipped(ByteSum bytes, NoFlip) { return bytes; }
HWY_INLINE ByteSum Flipped(ByteSum bytes, ByteSum flip) { return hn::Xor(bytes, flip); }

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
