// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/windows/depthwise.h"

#include "plugins/math/simd/targets.h"

#ifndef FUSEBOX_CPU_DEPTHWISE_CODE
#define FUSEBOX_CPU_DEPTHWISE_CODE
namespace fusebox::cpu {
struct DepthwiseCode {
  void (*run)(const DepthwiseRun&);
};
}  // namespace fusebox::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/windows/depthwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using All = hn::CappedTag<float, 16>;
// For few channels: half as long on CPUs that halve vectors of 64 bytes.
using Half = hn::CappedTag<float, 8>;
constexpr int64_t kLanes = HWY_MAX_LANES_D(All);
constexpr int64_t kHalfLanes = HWY_MAX_LANES_D(Half);

// A vector of channels; kWhole: there are as many. A load of weights serves kPixels pixels.
template <class D, bool kWhole, int kPixels>
HWY_INLINE void Pixels(const DepthwiseRun& x, int64_t pixel, int64_t channel) {
  constexpr D d;
  const auto left = static_cast<size_t>(x.channels - channel);
  const auto load = [&](const float* from) HWY_ATTR {
    if constexpr (kWhole) return hn::LoadU(d, from);
    else return hn::LoadN(d, from, left);
  };
  hn::Vec<D> sums[kPixels];
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i) sums[i] = hn::Zero(d);
  const float* line = x.input + pixel * x.pixel_step + channel;
  const float* line_weights = x.weights + channel;
  for (int64_t l = x.lines; l > 0; --l, line += x.line_step, line_weights += x.weights_step) {
    const float* at = line;
    const float* weights = line_weights;
    for (int64_t t = x.taps; t > 0; --t, at += x.tap_step, weights += x.channels) {
      const auto weight = load(weights);
#pragma GCC unroll 4
      for (int i = 0; i < kPixels; ++i) sums[i] = hn::MulAdd(load(at + i * x.pixel_step), weight, sums[i]);
    }
  }
  const auto bias = x.bias ? load(x.bias + channel) : hn::Zero(d);
  const auto high = hn::Set(d, x.highest);
  const auto low = hn::Set(d, x.lowest);
  float* out = x.out + pixel * x.channels + channel;
#pragma GCC unroll 4
  for (int i = 0; i < kPixels; ++i, out += x.channels) {
    auto sum = x.bias ? hn::Add(sums[i], bias) : sums[i];
    sum = hn::IfThenElse(hn::Gt(sum, high), high, sum);  // NaN stays: it compares false
    sum = hn::IfThenElse(hn::Lt(sum, low), low, sum);
    if constexpr (kWhole) hn::StoreU(sum, d, out);
    else hn::StoreN(sum, d, out, left);
  }
}

template <int kPixels>
HWY_INLINE void AllChannels(const DepthwiseRun& x, int64_t pixel) {
  int64_t channel = 0;
  for (; channel + kLanes <= x.channels; channel += kLanes) Pixels<All, true, kPixels>(x, pixel, channel);
  if constexpr (kHalfLanes < kLanes) {
    if (channel + kHalfLanes == x.channels) return Pixels<Half, true, kPixels>(x, pixel, channel);
    if (x.channels - channel < kHalfLanes && channel < x.channels)
      return Pixels<Half, false, kPixels>(x, pixel, channel);
  }
  if (channel < x.channels) Pixels<All, false, kPixels>(x, pixel, channel);
}

// Channels in turn: if their number is a power of two, the same channels of other pixels share few places of
// the cache.
void Run(const DepthwiseRun& x) {
  int64_t pixel = 0;
  for (; pixel + 4 <= x.pixels; pixel += 4) AllChannels<4>(x, pixel);
  for (; pixel < x.pixels; ++pixel) AllChannels<1>(x, pixel);
}

const DepthwiseCode& DepthwiseTable() {
  static constexpr DepthwiseCode code{Run};
  return code;
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cpu {
namespace {

std::vector<const DepthwiseCode*> Codes() { return FUSEBOX_SIMD_TABLES(DepthwiseCode, DepthwiseTable); }

}  // namespace

void Depthwise(const DepthwiseRun& run) { math::SimdChoice<DepthwiseCode, Codes>::Best().run(run); }

}  // namespace fusebox::cpu
#endif
