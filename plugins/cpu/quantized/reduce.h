// SPDX-License-Identifier: Apache-2.0
// Quantized values of quantized MEAN, SUM and REDUCE_PROD, rounded like TFLite's reference kernels, which it
// runs on x86-64.
#pragma once

#include <cmath>
#include <type_traits>

#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {

// float(a) * b, rounded to float before an addition; prevents fused multiply-add.
inline float FloatProduct(float a, float b) { return static_cast<float>(double{a} * b); }

// The mean of `folds` quantized values from their sum. Four forms:
//   image, u8       one fixed-point factor for scales and count
//   image, i8, i16  scaled in fixed point, then divided by the count, half away from zero
//   one scale       the quotient is truncated
//   two scales      in f32, half away from zero
template <class T>
class QuantizedMean {
 public:
  // `image`: reduces dims 1 and 2 of four with keep_dims.
  QuantizedMean(Affine from, Affine to, bool image, int64_t folds) : from_(from), to_(to), image_(image) {
    const float scale = from.scale / to.scale;
    factor_ = scale;
    if (!image) {
      offset_ = FloatProduct(static_cast<float>(-from.zero), scale);
    } else if constexpr (kUnsigned) {
      const float zero = FloatProduct(static_cast<float>(from.zero), from.scale) / to.scale;
      offset_ = std::round(std::clamp(zero, -1e6f, 1e6f));
      fixed_ = FixedPoint(double{from.scale / FloatProduct(static_cast<float>(folds), to.scale)});
    } else {
      fixed_ = FixedPoint(double{from.scale} / to.scale);
    }
  }

  T operator()(int64_t total, int64_t folds) const {
    if (image_) return OfImage(total, folds);
    if (from_ == to_) return static_cast<T>(total / folds);
    const float mean = static_cast<float>(total) / static_cast<float>(folds);
    const float quantized = std::round(FloatProduct(mean, factor_) + offset_) + static_cast<float>(to_.zero);
    return static_cast<T>(std::clamp<float>(quantized, kLowest, kHighest));
  }

 private:
  static constexpr bool kUnsigned = std::is_same_v<T, uint8_t>;
  static constexpr float kLowest = std::numeric_limits<T>::lowest();
  static constexpr float kHighest = std::numeric_limits<T>::max();

  T OfImage(int64_t total, int64_t folds) const {
    if constexpr (kUnsigned) {
      return ClampTo<T>(Scaled(Narrow(total), fixed_) + to_.zero - static_cast<int32_t>(offset_));
    } else {
      const int64_t scaled = fixed_.Times(Narrow(total - folds * from_.zero));
      const int64_t mean = (scaled > 0 ? scaled + folds / 2 : scaled - folds / 2) / folds;
      return ClampTo<T>(static_cast<int32_t>(mean) + to_.zero);
    }
  }
  static int32_t Narrow(int64_t x) {
    return static_cast<int32_t>(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
  }

  Affine from_, to_;
  bool image_;
  float factor_ = 1;
  float offset_ = 0;
  FixedPoint fixed_;
};

// The sum, in f32 for bytes with different scales. Saturates.
template <class T>
class QuantizedSum {
 public:
  QuantizedSum(Affine from, Affine to, int64_t folds) : from_(from), to_(to), factor_(from.scale / to.scale) {
    offset_ = FloatProduct(FloatProduct(static_cast<float>(-from.zero), factor_), static_cast<float>(folds));
  }

  T operator()(int64_t total, int64_t folds) const {
    if (sizeof(T) > 1 || from_ == to_)
      return Nearest<T>(from_.scale * static_cast<double>(total - folds * from_.zero), to_);
    const float sum = std::round(FloatProduct(static_cast<float>(total), factor_) + offset_);
    return ClampTo<T>(static_cast<int32_t>(std::clamp(sum, -1e6f, 1e6f)) + to_.zero);
  }

 private:
  Affine from_, to_;
  float factor_, offset_;
};

// The product, factor by factor. Each factor is scaled, so that all of them together are scaled to the
// result.
template <class T>
class QuantizedProd {
 public:
  QuantizedProd(Affine from, Affine to, int64_t folds)
      : from_(from),
        to_(to),
        each_(double{from.scale} / std::pow(double{to.scale}, 1 / static_cast<double>(folds))) {}

  int32_t First(T x) const { return x - from_.zero; }
  int32_t Next(int32_t product, T x) const { return Scaled(int64_t{product} * (x - from_.zero), each_); }
  T Finish(int32_t product) const { return ClampTo<T>(Scaled(int64_t{product}, each_) + to_.zero); }
  T OfNothing() const { return Nearest<T>(1, to_); }

 private:
  Affine from_, to_;
  FixedPoint each_;
};

}  // namespace fusebox::cpu
