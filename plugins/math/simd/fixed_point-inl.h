// SPDX-License-Identifier: Apache-2.0
// Fixed-point scaling (fixed_point.h) of vectors of 32 bits. Compiled once per target.
#if defined(FUSEBOX_MATH_FIXED_POINT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_FIXED_POINT_INL_H_
#undef FUSEBOX_MATH_FIXED_POINT_INL_H_
#else
#define FUSEBOX_MATH_FIXED_POINT_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/math/simd/fixed_point.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The upper half of twice the product, rounded half up.
template <class V>
HWY_INLINE V HighProduct(V a, V b) {
  const hn::DFromV<V> d;
  const hn::RepartitionToWide<decltype(d)> wide;
  const hn::RebindToUnsigned<decltype(wide)> bits;
  const auto round = hn::Set(wide, int64_t{1} << 30);
  const auto even = hn::BitCast(bits, hn::Add(hn::MulEven(a, b), round));
  const auto odd = hn::BitCast(bits, hn::Add(hn::MulOdd(a, b), round));
  return hn::OddEven(hn::BitCast(d, hn::ShiftLeft<1>(odd)), hn::BitCast(d, hn::ShiftRight<31>(even)));
}

// Saturates.
template <class V>
HWY_INLINE V ShiftedLeft(V x, V bits) {
  const V shifted = hn::Shl(x, bits);
  const V most = hn::Xor(hn::Set(hn::DFromV<V>(), INT32_MAX), hn::BroadcastSignBit(x));
  return hn::IfThenElse(hn::Eq(hn::Shr(shifted, bits), x), shifted, most);
}

// x / 2^bits; no sum overflows.
template <class V>
HWY_INLINE V ShiftedHalfUp(V x, V bits) {
  const hn::DFromV<V> d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1);
  const V below = hn::Shr(x, hn::Max(hn::Sub(bits, one), zero));
  return hn::Add(hn::Shr(x, bits), hn::IfThenElseZero(hn::Gt(bits, zero), hn::And(below, one)));
}
template <class V>
HWY_INLINE V ShiftedHalfAway(V x, V bits) {
  const V one = hn::Set(hn::DFromV<V>(), 1);
  const V mask = hn::Sub(hn::Shl(one, bits), one);
  const V threshold = hn::Sub(hn::ShiftRight<1>(mask), hn::BroadcastSignBit(x));
  return hn::Add(hn::Shr(x, bits), hn::IfThenElseZero(hn::Gt(hn::And(x, mask), threshold), one));
}

// by.Times(x)
template <class V>
HWY_INLINE V Times(FixedPoint by, V x) {
  const hn::DFromV<V> d;
  if (by.shift > 0) x = ShiftedLeft(x, hn::Set(d, by.shift));
  const V high = HighProduct(x, hn::Set(d, by.value));
  return by.shift < 0 ? ShiftedHalfAway(high, hn::Set(d, -by.shift)) : high;
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
