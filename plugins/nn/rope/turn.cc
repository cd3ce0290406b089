// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/rope/turn.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/nn/rope/turn.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::nn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

using DoubleTag = hn::CappedTag<double, math::kMaxLanes / 2>;
using HalfTag = hn::Rebind<float, DoubleTag>;
using DoubleVector = hn::Vec<DoubleTag>;
using HalfVector = hn::Vec<HalfTag>;
constexpr size_t kDoubles = HWY_MAX_LANES_D(DoubleTag);

// Taylor series for |r| <= pi / 4: the next terms are below 2e-9 and 3e-8.
HWY_INLINE void SinCos(HalfVector r, HalfVector& sine, HalfVector& cosine) {
  const HalfTag d;
  const HalfVector square = hn::Mul(r, r);
  HalfVector s = hn::MulAdd(square, hn::Set(d, 1.0f / 362880), hn::Set(d, -1.0f / 5040));
  s = hn::MulAdd(s, square, hn::Set(d, 1.0f / 120));
  s = hn::MulAdd(s, square, hn::Set(d, -1.0f / 6));
  sine = hn::MulAdd(hn::Mul(s, square), r, r);
  HalfVector c = hn::MulAdd(square, hn::Set(d, 1.0f / 40320), hn::Set(d, -1.0f / 720));
  c = hn::MulAdd(c, square, hn::Set(d, 1.0f / 24));
  c = hn::MulAdd(c, square, hn::Set(d, -0.5f));
  cosine = hn::MulAdd(c, square, hn::Set(d, 1.0f));
}

void Angles(double position, const float* rates, bool divides, size_t count, float* cosines, float* sines) {
  const DoubleTag dd;
  const HalfTag d;
  const DoubleVector p = hn::Set(dd, position);
  for (size_t i = 0; i < count; i += kDoubles) {
    const size_t left = std::min(kDoubles, count - i);
    const DoubleVector rate = hn::PromoteTo(dd, hn::LoadN(d, rates + i, left));
    const DoubleVector angle = divides ? hn::Div(p, rate) : hn::Mul(p, rate);
    const DoubleVector quarters = hn::Round(hn::Mul(angle, hn::Set(dd, 0.63661977236758134)));
    const DoubleVector rest = hn::NegMulAdd(quarters, hn::Set(dd, 1.5707963267948966), angle);
    const DoubleVector turns = hn::Floor(hn::Mul(quarters, hn::Set(dd, 0.25)));
    const HalfVector quadrant = hn::DemoteTo(d, hn::NegMulAdd(turns, hn::Set(dd, 4.0), quarters));
    HalfVector sine;
    HalfVector cosine;
    SinCos(hn::DemoteTo(d, rest), sine, cosine);
    const auto first = hn::Eq(quadrant, hn::Set(d, 1.0f));
    const auto second = hn::Eq(quadrant, hn::Set(d, 2.0f));
    const auto third = hn::Eq(quadrant, hn::Set(d, 3.0f));
    const auto swapped = hn::Or(first, third);
    const HalfVector x = hn::IfThenElse(swapped, sine, cosine);
    const HalfVector y = hn::IfThenElse(swapped, cosine, sine);
    hn::StoreN(hn::IfThenElse(hn::Or(first, second), hn::Neg(x), x), d, cosines + i, left);
    hn::StoreN(hn::IfThenElse(hn::Or(second, third), hn::Neg(y), y), d, sines + i, left);
  }
}

void Rotate(const float* HWY_RESTRICT x, const float* HWY_RESTRICT cosines, const float* HWY_RESTRICT sines,
            size_t half, float* HWY_RESTRICT y) {
  for (size_t i = 0; i < half; i += kFloatLanes) {
    const size_t left = half - i;
    const FloatVector a = LoadSome(x + i, left);
    const FloatVector b = LoadSome(x + half + i, left);
    const FloatVector c = LoadSome(cosines + i, left);
    const FloatVector s = LoadSome(sines + i, left);
    StoreSome(hn::NegMulAdd(b, s, hn::Mul(a, c)), y + i, left);
    StoreSome(hn::MulAdd(a, s, hn::Mul(b, c)), y + half + i, left);
  }
}

const RopeCode& TurnCode() {
  static constexpr RopeCode code{Angles, Rotate};
  return code;
}

}  // namespace fusebox::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::nn {

std::vector<const RopeCode*> RopeCodes() { return FUSEBOX_SIMD_TABLES(RopeCode, TurnCode); }

}  // namespace fusebox::nn
#endif
