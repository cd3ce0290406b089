// SPDX-License-Identifier: Apache-2.0
// Quantized tensors: interpretation of quantized integers, fixed-point scaling of sums, activations on
// quantized values.
//
// A real value is scale * (quantized - zero). "Quantized" means an i8, u8, i16 or i4 tensor with a scale.
// Quantization records on floats or indices (left by converters) are ignored.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fusebox/kernel.hpp>
#include <fusebox/quant.hpp>

#include "plugins/cpu/base/activation.h"
#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/math/simd/fixed_point.h"

namespace fusebox::cpu {

using namespace sdk;

inline constexpr Types<int8_t, uint8_t> kBytes;
inline constexpr Types<int8_t, uint8_t, int16_t> kQuantized;

inline bool IsQuantized(Tensor t) {
  const bool integer =
      t.dtype() == FBX_I8 || t.dtype() == FBX_U8 || t.dtype() == FBX_I16 || t.dtype() == FBX_I4;
  return integer && t.quant() && t.quant()->kind != FBX_QUANT_NONE;
}
inline bool IsQuantized(const Node& n, uint32_t operand) {
  return n.has_in(operand) && IsQuantized(n.in(operand));
}

// One scale and zero point for a whole tensor.
struct Affine {
  float scale = 1;
  int32_t zero = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

// For a tensor that passed RequireQuantized.
inline Affine AffineOf(Tensor t) {
  return {t.quant()->scales[0], static_cast<int32_t>(t.quant()->zero_points[0])};
}

// Why the tensor's scales or zero points are invalid: a scale is not a positive number, or a zero point is
// out of the dtype's range. Empty: valid.
inline std::string WhyNoScales(Tensor t) {
  const fbx_quant* q = t.quant();
  if (!q || q->count == 0 || !q->scales || !q->zero_points) return "no scale";
  if (scales_are_positive(*q) && is_symmetric(*q)) return {};  // usual for filters
  const int64_t highest = t.dtype() == FBX_U8   ? 255
                          : t.dtype() == FBX_I8 ? 127
                          : t.dtype() == FBX_I4 ? 7
                                                : 32767;
  const int64_t lowest = t.dtype() == FBX_U8 ? 0 : -highest - 1;
  for (uint32_t i = 0; i < q->count; ++i) {
    if (!(q->scales[i] > 0) || !std::isfinite(q->scales[i]))
      return "a scale of " + std::to_string(q->scales[i]);
    if (q->zero_points[i] < lowest || q->zero_points[i] > highest)
      return "a zero point of " + std::to_string(q->zero_points[i]);
  }
  return {};
}

inline void RequireScales(Tensor t, const std::string& subject) {
  if (std::string why = WhyNoScales(t); !why.empty()) throw Reject{"QUANT", std::move(why), subject};
}

inline void RequireQuantized(Tensor t, const std::string& subject) {
  if (!Contains(kQuantized, t.dtype()))
    throw Reject{"DTYPE", "quantized " + std::string(dtype_name(t.dtype())) + " is unsupported", subject};
  if (!IsQuantized(t)) throw Reject{"QUANT", "no scale", subject};
  if (t.quant()->kind != FBX_QUANT_PER_TENSOR && t.quant()->count != 1)
    throw Reject{"QUANT", "one scale per channel", subject};
  RequireScales(t, subject);
}

// A 16-bit value minus a zero point does not fit into 16 bits.
inline void RequireNoZeroPoint(Tensor t, const std::string& subject) {
  if (t.dtype() != FBX_I16) return;
  for (uint32_t i = 0; i < t.quant()->count; ++i)
    if (t.quant()->zero_points[i] != 0) throw Reject{"QUANT", "i16 with a zero point", subject};
}

// For supports: the operand and result 0 are quantized i8, u8 or i16 with one scale each, and of one dtype.
inline void RequireQuantized(const Node& n, uint32_t operand) {
  RequireQuantized(n.in(operand), "operand " + std::to_string(operand));
}
inline void RequireQuantizedResult(const Node& n, uint32_t operand) {
  if (n.out_count() == 0 || !IsQuantized(n.out(0)))
    throw Reject{"QUANT", std::string(dtype_name(n.in(operand).dtype())) + " to a result without a scale",
                 "result 0"};
  RequireQuantized(n.out(0), "result 0");
  if (n.out(0).dtype() != n.in(operand).dtype())
    throw Reject{"DTYPE",
                 std::string(dtype_name(n.in(operand).dtype())) + " to " + dtype_name(n.out(0).dtype()),
                 "result 0"};
}

// For supports: result 0 has the same quantization as the operand. Without a scale, it has the operand's, as
// in TFLite.
inline void RequireSameQuant(const Node& n, uint32_t operand) {
  if (n.out_count() == 0 || n.out(0).dtype() != n.in(operand).dtype())
    throw Reject{"DTYPE", "the result is not " + std::string(dtype_name(n.in(operand).dtype())), "result 0"};
  if (IsQuantized(n.out(0)) && !SameQuant(n.in(operand).quant(), n.out(0).quant()))
    throw Reject{"QUANT", "the result has a different scale", "operand " + std::to_string(operand)};
}

using math::FixedPoint;

// Saturates at 2^30, so that a zero point can be added.
FUSEBOX_INLINE inline int32_t Scaled(int32_t x, FixedPoint by) {
  return std::clamp(by.Times(x), -(1 << 30), 1 << 30);
}

// 64-bit sums: multiplied by the upper 15 bits of the factor and rounded once, half up, as in TFLite.
FUSEBOX_INLINE inline int32_t Scaled(int64_t x, FixedPoint by) {
  const int64_t factor = std::min<int64_t>((int64_t{by.value} + (1 << 15)) >> 16, 0x7FFF);
  const int32_t down = 15 - by.shift;
  const int64_t most = int64_t{1} << (down > 0 ? 47 : 31);
  const int64_t product = std::clamp(x, -most, most) * factor;
  const int64_t high = down > 0 ? (product + (int64_t{1} << (down - 1))) >> down : product << -down;
  return static_cast<int32_t>(std::clamp<int64_t>(high, -(1 << 30), 1 << 30));
}

// Saturates to S.
template <class S>
FUSEBOX_INLINE inline S ClampTo(int32_t x) {
  return static_cast<S>(
      std::clamp<int32_t>(x, std::numeric_limits<S>::lowest(), std::numeric_limits<S>::max()));
}

// The nearest quantized value: rounds half away from zero, saturates, NaN becomes the zero point.
template <class S>
FUSEBOX_INLINE inline S Nearest(double real, Affine to) {
  const double q = std::round(real / to.scale) + to.zero;
  if (std::isnan(q)) return static_cast<S>(to.zero);
  return static_cast<S>(
      std::clamp<double>(q, std::numeric_limits<S>::lowest(), std::numeric_limits<S>::max()));
}

// The quantized values that an activation allows.
struct QuantizedRange {
  int32_t lowest, highest;
  QuantizedRange(Activation a, Tensor t) {
    const Affine q = AffineOf(t);
    lowest = t.dtype() == FBX_U8 ? 0 : t.dtype() == FBX_I16 ? -32768 : -128;
    highest = t.dtype() == FBX_U8 ? 255 : -lowest - 1;
    const auto quantized = [&, low = lowest, high = highest](float real) {
      return static_cast<int32_t>(std::clamp<float>(std::round(real / q.scale) + static_cast<float>(q.zero),
                                                    static_cast<float>(low), static_cast<float>(high)));
    };
    if (a == Activation::kRelu || a == Activation::kRelu6) lowest = quantized(0);
    if (a == Activation::kReluN1To1) {
      lowest = quantized(-1);
      highest = quantized(1);
    }
    if (a == Activation::kRelu6) highest = quantized(6);
  }
  FUSEBOX_INLINE int32_t operator()(int32_t x) const { return std::min(std::max(x, lowest), highest); }
};

// For supports of quantized ops with an activation.
inline void RequireQuantizedActivation(const Node& n) {
  if (FusedActivation(n) == Activation::kTanh)
    throw Reject{"ATTR", "TANH of a quantized tensor", "attr fused_activation_function"};
}

// For supports of a function of one quantized value.
inline void RequireQuantizedMap(const Node& n) {
  RequireQuantized(n, 0);
  RequireQuantizedResult(n, 0);
}

}  // namespace fusebox::cpu
