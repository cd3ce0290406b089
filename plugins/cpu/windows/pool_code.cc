// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/windows/pool_code.h"

#include <limits>
#include <vector>

#include "plugins/math/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/windows/pool_code.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> Load(D d, const hn::TFromD<D>* from, size_t left) {
  return left >= hn::Lanes(d) ? hn::LoadU(d, from) : hn::LoadN(d, from, left);
}

template <class D>
HWY_INLINE void Store(D d, hn::Vec<D> v, hn::TFromD<D>* to, size_t left) {
  if (left >= hn::Lanes(d)) hn::StoreU(v, d, to);
  else hn::StoreN(v, d, to, left);
}

// kVectors vectors of channels: `fold` joins loaded ones to what begins as `start`, `finish` makes results.
template <int kVectors, class D, class V, class Fold, class Finish>
HWY_INLINE void Block(D d, const PoolWindow& w, int64_t channel, V start, const Fold& fold,
                      const Finish& finish) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto left = [&](int v) HWY_ATTR { return static_cast<size_t>(w.channels - channel - v * lanes); };
  V totals[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) totals[v] = start;
  const T* line = static_cast<const T*>(w.first) + channel;
  for (int64_t y = 0; y < w.height; ++y, line += w.row) {
    const T* in = line;
    for (int64_t x = 0; x < w.width; ++x, in += w.channels) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) totals[v] = fold(totals[v], Load(d, in + v * lanes, left(v)));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    Store(d, finish(totals[v]), static_cast<T*>(w.pixel) + channel + v * lanes, left(v));
}

template <class D, class V, class Fold, class Finish>
HWY_INLINE void Pool(D d, const PoolWindow& w, V start, const Fold& fold, const Finish& finish) {
  constexpr int kVectors = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + kVectors * lanes <= w.channels; c += kVectors * lanes)
    Block<kVectors>(d, w, c, start, fold, finish);
  for (; c < w.channels; c += lanes) Block<1>(d, w, c, start, fold, finish);
}

void AverageFloats(const PoolWindow& w) {
  const hn::CappedTag<float, 16> d;
  const auto taps = hn::Set(d, static_cast<float>(w.height * w.width));
  Pool(
      d, w, hn::Zero(d), [](auto sum, auto x) HWY_ATTR { return hn::Add(sum, x); },
      [&](auto sum) HWY_ATTR { return hn::Div(sum, taps); });
}

void MaxFloats(const PoolWindow& w) {
  const hn::CappedTag<float, 16> d;
  Pool(
      d, w, hn::Set(d, -std::numeric_limits<float>::infinity()),
      [](auto most, auto x)
          HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Lt(most, x), hn::IsNaN(x)), x, most); },
      [](auto most) HWY_ATTR { return most; });
}

// The quotients are exact enough in float: operands are below 2^24, and a quotient below 256 is at least
// 1 / kMostPoolTaps away from the next whole number if it is none.
void AverageBytes(const PoolWindow& w, uint8_t flip) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di;
  const hn::Rebind<uint8_t, decltype(df)> d8;
  const int64_t taps = w.height * w.width;
  const auto flips = hn::Set(d8, flip);
  const auto zero = hn::Set(di, int32_t{flip});
  const auto bias = hn::Set(di, static_cast<int32_t>(flip * taps));
  const auto half = hn::Set(di, static_cast<int32_t>(taps / 2));
  const auto divisor = hn::Set(df, static_cast<float>(taps));
  Pool(
      d8, w, hn::Zero(di),
      [&](auto sum, auto bytes) HWY_ATTR { return hn::Add(sum, hn::PromoteTo(di, hn::Xor(bytes, flips))); },
      [&](auto all) HWY_ATTR {
        const auto sum = hn::Sub(all, bias);
        const auto away = hn::IfThenElse(hn::Gt(sum, hn::Zero(di)), hn::Add(sum, half), hn::Sub(sum, half));
        const auto mean = hn::ConvertTo(di, hn::Div(hn::ConvertTo(df, away), divisor));
        return hn::Xor(hn::DemoteTo(d8, hn::Add(mean, zero)), flips);
      });
}

void MaxBytes(const PoolWindow& w, uint8_t flip) {
  const hn::CappedTag<uint8_t, 32> d;
  const auto flips = hn::Set(d, flip);
  Pool(
      d, w, hn::Zero(d), [&](auto most, auto x) HWY_ATTR { return hn::Max(most, hn::Xor(x, flips)); },
      [&](auto most) HWY_ATTR { return hn::Xor(most, flips); });
}

const PoolCode& CodeOfPools() {
  static constexpr PoolCode code{AverageFloats, MaxFloats, AverageBytes, MaxBytes};
  return code;
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cpu {
namespace {

std::vector<const PoolCode*> PoolCodes() { return FUSEBOX_SIMD_TABLES(PoolCode, CodeOfPools); }

}  // namespace

const PoolCode& BestPoolCode() { return math::SimdChoice<PoolCode, PoolCodes>::Best(); }

}  // namespace fusebox::cpu
#endif
