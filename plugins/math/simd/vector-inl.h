// SPDX-License-Identifier: Apache-2.0
// Vectors of f32: partial loads and stores, exponentials and activations. Sigmoid and tanh are within 3 ulp;
// NaN stays NaN, infinities map to the limits. Compiled once per target.
#if defined(FUSEBOX_MATH_SIMD_VECTOR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_SIMD_VECTOR_INL_H_
#undef FUSEBOX_MATH_SIMD_VECTOR_INL_H_
#else
#define FUSEBOX_MATH_SIMD_VECTOR_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/common/activation.h"
#include "plugins/math/simd/lanes.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using common::Activation;

using FloatTag = hn::CappedTag<float, kMaxLanes>;
using FloatVector = hn::Vec<FloatTag>;
constexpr FloatTag fd{};
constexpr size_t kFloatLanes = HWY_MAX_LANES_D(FloatTag);

// The first `count` values, or a whole vector; the others are zero.
HWY_INLINE FloatVector LoadSome(const float* from, size_t count) {
  return HWY_LIKELY(count >= kFloatLanes) ? hn::LoadU(fd, from) : hn::LoadN(fd, from, count);
}

HWY_INLINE void StoreSome(FloatVector v, float* to, size_t count) {
  if (HWY_LIKELY(count >= kFloatLanes)) {
    hn::StoreU(v, fd, to);
  } else {
    hn::StoreN(v, fd, to, count);
  }
}

// exp(x) = 2^k * (1 + p) with p = exp(r) - 1 and |r| <= ln(2) / 2. Needs |x| < 1e4, or NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> ReduceExp(D d, V x, V& p) {
  const auto k = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V kf = hn::ConvertTo(d, k);
  // ln 2 in two parts, the first short enough for an exact product.
  V r = hn::NegMulAdd(kf, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(kf, hn::Set(d, -2.12194440e-4f), r);
  // (exp(r) - 1 - r) / r^2 interpolated at Chebyshev nodes: relative error of p below 2.5e-8.
  V q = hn::MulAdd(hn::Set(d, 0.00139261836f), r, hn::Set(d, 0.00836317905f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.0416665546f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.16666577f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(hn::Mul(r, r), q, r);
  return k;
}

// 2^k for k in [-126, 127].
template <class D, class K>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, K k) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
}

// exp(x) = scale * (1 + p). Needs |x| < 88, or NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void SplitExp(D d, V x, V& scale, V& p) {
  scale = PowerOfTwo(d, ReduceExp(d, x, p));
}

constexpr float kLog2E = 1.44269504f;

// 2^x for x <= 0, within 2 ulp; 0 where the result is below the smallest normal number. NaN stays NaN.
HWY_INLINE FloatVector Exp2(FloatVector x) {
  // Adding this rounds x to an integer, with the bias of an exponent in the low bits.
  const FloatVector round = hn::Set(fd, 12582912.0f + 127.0f);
  const FloatVector rounded = hn::Add(x, round);
  const FloatVector r = hn::Sub(x, hn::Sub(rounded, round));
  // (2^r - 1) / r, interpolated at Chebyshev nodes: relative error of 2^r below 6e-9.
  FloatVector q = hn::MulAdd(hn::Set(fd, 1.54531624e-4f), r, hn::Set(fd, 1.33908634e-3f));
  q = hn::MulAdd(q, r, hn::Set(fd, 9.61808256e-3f));
  q = hn::MulAdd(q, r, hn::Set(fd, 5.55035711e-2f));
  q = hn::MulAdd(q, r, hn::Set(fd, 2.40226508e-1f));
  q = hn::MulAdd(q, r, hn::Set(fd, 6.93147188e-1f));
  const hn::RebindToSigned<FloatTag> di;
  const FloatVector scale = hn::BitCast(fd, hn::ShiftLeft<23>(hn::BitCast(di, rounded)));
  const FloatVector power = hn::MulAdd(hn::Mul(q, r), scale, scale);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(fd, -126.0f)), power);
}

// Comparisons instead of Min and Max: those may turn NaN into the bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Clamp(D, V x, V low, V high) {
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  return hn::IfThenElse(hn::Lt(x, low), low, x);
}

// exp(x) for all x, with subnormal results.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  V p;
  const auto k = ReduceExp(d, Clamp(d, x, hn::Set(d, -104.0f), hn::Set(d, 89.0f)), p);
  const auto half = hn::ShiftRight<1>(k);  // two factors: 2^128 and subnormal powers are out of range
  const V part = hn::Mul(hn::Add(p, hn::Set(d, 1.0f)), PowerOfTwo(d, half));
  return hn::Mul(part, PowerOfTwo(d, hn::Sub(k, half)));
}

// 1 + exp(-x), the divisor of the sigmoid.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SigmoidDivisor(D d, V x) {
  V scale, p;
  SplitExp(d, hn::Neg(Clamp(d, x, hn::Set(d, -87.0f), hn::Set(d, 87.0f))), scale, p);
  return hn::MulAdd(p, scale, hn::Add(scale, hn::Set(d, 1.0f)));
}

// E = exp(2x) - 1, which keeps its precision near 0; tanh is E / (E + 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhDividend(D d, V x) {
  const V limit = hn::Set(d, 10.0f);
  const V y = Clamp(d, x, hn::Neg(limit), limit);
  V scale, p;
  SplitExp(d, hn::Add(y, y), scale, p);
  return hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(d, 1.0f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), SigmoidDivisor(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  const V e = TanhDividend(d, x);
  return hn::Div(e, hn::Add(e, hn::Set(d, 2.0f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V HardSigmoid(D d, V x, float slope) {
  const V line = hn::MulAdd(x, hn::Set(d, slope), hn::Set(d, 0.5f));
  return Clamp(d, line, hn::Zero(d), hn::Set(d, 1.0f));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activated(D d, V x, Activation activation) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return Clamp(d, x, hn::Zero(d), hn::Inf(d));
    case Activation::kReluN1To1: return Clamp(d, x, hn::Set(d, -1.0f), hn::Set(d, 1.0f));
    case Activation::kRelu6: return Clamp(d, x, hn::Zero(d), hn::Set(d, 6.0f));
    case Activation::kSigmoid: return Sigmoid(d, x);
    case Activation::kHardSigmoid: return HardSigmoid(d, x, 0.2f);
    case Activation::kHardSigmoidOfKeras3: return HardSigmoid(d, x, 1.0f / 6);
    case Activation::kTanh: break;
  }
  return Tanh(d, x);
}

// sigmoid(gate) * tanh(x) with one division, which is the most expensive part of a gate. If the product of
// the divisors overflows, the result is 0 instead of a number below 2e-30.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GatedTanh(D d, V gate, V x) {
  const V e = TanhDividend(d, x);
  return hn::Div(e, hn::Mul(SigmoidDivisor(d, gate), hn::Add(e, hn::Set(d, 2.0f))));
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
