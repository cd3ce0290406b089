// SPDX-License-Identifier: Apache-2.0
// The cells' activations in vectors of f32, sigmoid and tanh within 3 ulp; NaN stays NaN, infinities give the
// limits. Compiled once per target.
#if defined(FUSEBOX_RNN_LSTM_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_RNN_LSTM_MATH_INL_H_
#undef FUSEBOX_RNN_LSTM_MATH_INL_H_
#else
#define FUSEBOX_RNN_LSTM_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/rnn/cell/activation.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x) = scale * (1 + p) with p = exp(r) - 1 and |r| <= ln(2) / 2. Needs |x| < 88, or NaN.
template <class V>
struct SplitExp {
  V scale, p;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE SplitExp<V> Exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto k = hn::NearestInt(hn::Mul(x, hn::Set(d, 1.44269504f)));
  const V kf = hn::ConvertTo(d, k);
  V r = hn::NegMulAdd(kf, hn::Set(d, 0.693359375f),
                      x);  // ln 2 in two parts, the first short enough to be exact
  r = hn::NegMulAdd(kf, hn::Set(d, -2.12194440e-4f), r);
  // (exp(r) - 1 - r) / r^2 interpolated at Chebyshev nodes: relative error of p below 2.5e-8.
  V q = hn::MulAdd(hn::Set(d, 0.00139261836f), r, hn::Set(d, 0.00836317905f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.0416665546f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.16666577f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.5f));
  const V p = hn::MulAdd(hn::Mul(r, r), q, r);
  return {hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127)))), p};
}

// Comparisons instead of Min and Max: those may turn NaN into the bound.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Clamp(D, V x, V low, V high) {
  x = hn::IfThenElse(hn::Gt(x, high), high, x);
  return hn::IfThenElse(hn::Lt(x, low), low, x);
}

// 1 + exp(-x), the divisor of the sigmoid.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V SigmoidDivisor(D d, V x) {
  const auto e = Exp(d, hn::Neg(Clamp(d, x, hn::Set(d, -87.0f), hn::Set(d, 87.0f))));
  return hn::MulAdd(e.p, e.scale, hn::Add(e.scale, hn::Set(d, 1.0f)));
}

// exp(2x) - 1, which loses nothing near 0; tanh is E / (E + 2).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TanhDividend(D d, V x) {
  const V limit = hn::Set(d, 10.0f);
  const V y = Clamp(d, x, hn::Neg(limit), limit);
  const auto e = Exp(d, hn::Add(y, y));
  return hn::MulAdd(e.p, e.scale, hn::Sub(e.scale, hn::Set(d, 1.0f)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), SigmoidDivisor(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V HardSigmoid(D d, V x, float slope) {
  const V line = hn::MulAdd(x, hn::Set(d, slope), hn::Set(d, 0.5f));
  return Clamp(d, line, hn::Zero(d), hn::Set(d, 1.0f));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Activated(D d, V x, CellActivation activation) {
  switch (activation) {
    case CellActivation::kLinear: return x;
    case CellActivation::kRelu: return Clamp(d, x, hn::Zero(d), hn::Inf(d));
    case CellActivation::kReluN1To1: return Clamp(d, x, hn::Set(d, -1.0f), hn::Set(d, 1.0f));
    case CellActivation::kRelu6: return Clamp(d, x, hn::Zero(d), hn::Set(d, 6.0f));
    case CellActivation::kSigmoid: return Sigmoid(d, x);
    case CellActivation::kHardSigmoid: return HardSigmoid(d, x, 0.2f);
    case CellActivation::kHardSigmoidOfKeras3: return HardSigmoid(d, x, 1.0f / 6);
    case CellActivation::kTanh: break;
  }
  const V e = TanhDividend(d, x);
  return hn::Div(e, hn::Add(e, hn::Set(d, 2.0f)));
}

// sigmoid(gate) * tanh(x). One division does for both, since divisions are what gates cost; where the product
// of the divisors overflows, the value is below the smallest normal number.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V GatedTanh(D d, V gate, V x) {
  const V e = TanhDividend(d, x);
  return hn::Div(e, hn::Mul(SigmoidDivisor(d, gate), hn::Add(e, hn::Set(d, 2.0f))));
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
