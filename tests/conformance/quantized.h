// SPDX-License-Identifier: Apache-2.0
// Quantized data for cases. Expected values are computed in double from the real values; kernels use fixed
// point with two roundings, like stock TFLite, and may differ by one step.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {

// Properties of the types. Scales are multiplied by `step`, so that the types span similar ranges.
template <class S>
struct Kind {
  static constexpr bool kWide = sizeof(S) > 1;
  static constexpr int64_t kLow = std::numeric_limits<S>::lowest(), kHigh = std::numeric_limits<S>::max();
  static constexpr int64_t kMiddle = (kLow + kHigh + 1) / 2;
  static constexpr float kStep = kWide ? 1.0f / 256 : 1.0f;
  // kMiddle + offset; 16-bit types have no zero point.
  static constexpr int64_t Zero(int64_t offset) { return kWide ? 0 : kMiddle + offset; }
  static const char* Name() { return kWide ? "i16" : kLow < 0 ? "i8" : "u8"; }
};

template <class S>
Data RandomQuantized(Dims dims, uint32_t seed, float scale, int64_t zero) {
  return Random<S>(std::move(dims), seed, Kind<S>::kLow, Kind<S>::kHigh).Quantized(scale, zero);
}

inline double Scale(const Data& d, int64_t channel) {
  return d.quant.scales[d.quant.scales.size() > 1 ? static_cast<size_t>(channel) : 0];
}

// Element i as a real number, in double.
inline double Real(const Data& d, int64_t i, int64_t channel = 0) {
  const auto at = static_cast<size_t>(i);
  const int quantized = d.dtype == FBX_I16  ? As<int16_t>(d)[at]
                        : d.dtype == FBX_U8 ? d.bytes[at]
                                            : static_cast<int8_t>(d.bytes[at]);
  const auto zero = d.quant.zero_points[d.quant.zero_points.size() > 1 ? static_cast<size_t>(channel) : 0];
  return Scale(d, channel) * static_cast<double>(quantized - zero);
}

template <class S>
Data Quantize(Dims dims, const std::vector<double>& real, float scale, int64_t zero) {
  std::vector<S> quantized;
  for (const double x : real) {
    const double q = std::round(x / scale) + static_cast<double>(zero);
    quantized.push_back(
        static_cast<S>(std::clamp<double>(q, static_cast<double>(Kind<S>::kLow), Kind<S>::kHigh)));
  }
  return Values<S>(std::move(dims), quantized).Quantized(scale, zero);
}

}  // namespace fusebox::conformance
