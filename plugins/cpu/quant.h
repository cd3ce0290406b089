// SPDX-License-Identifier: Apache-2.0
// Quantised tensors: what a stored integer means, fixed-point scaling of sums, and activations on stored values.
//
// A real value is scale * (stored - zero). "Quantised" below is an i8, u8 or i16 tensor with such a record; a float tensor
// that carries one (converters leave them behind) is a plain float tensor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/activation.h"
#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/simd.h"

namespace fusebox::cpu {

inline constexpr Types<int8_t, uint8_t> kBytes;

inline bool IsQuantised(Tensor t) {
  const bool stored = t.dtype() == FBX_I8 || t.dtype() == FBX_U8 || t.dtype() == FBX_I16 ||
                      t.dtype() == FBX_I4 || t.dtype() == FBX_I32;
  return stored && t.quant() && t.quant()->kind != FBX_QUANT_NONE;
}
inline bool IsQuantised(const Node& n, uint32_t operand) {
  return n.has_in(operand) && IsQuantised(n.in(operand));
}

// One scale and zero point for a whole tensor.
struct Affine {
  float scale = 1;
  int32_t zero = 0;
  friend bool operator==(const Affine&, const Affine&) = default;
};

// Of a tensor that RequireBytes accepted.
inline Affine AffineOf(Tensor t) {
  return {t.quant()->scales[0], static_cast<int32_t>(t.quant()->zero_points[0])};
}

// Throws Reject unless all scales are positive numbers and all zero points values of the dtype.
inline void RequireScales(Tensor t, const std::string& subject) {
  const fbx_quant* q = t.quant();
  if (!q || q->count == 0 || !q->scales || !q->zero_points) throw Reject{"QUANT", "no scale", subject};
  const int64_t highest = t.dtype() == FBX_U8   ? 255
                          : t.dtype() == FBX_I8 ? 127
                          : t.dtype() == FBX_I4 ? 7
                                                : 32767;
  const int64_t lowest = t.dtype() == FBX_U8 ? 0 : -highest - 1;
  for (uint32_t i = 0; i < q->count; ++i) {
    if (!(q->scales[i] > 0) || !std::isfinite(q->scales[i]))
      throw Reject{"QUANT", "a scale of " + std::to_string(q->scales[i]), subject};
    if (q->zero_points[i] < lowest || q->zero_points[i] > highest)
      throw Reject{"QUANT", "a zero point of " + std::to_string(q->zero_points[i]), subject};
  }
}

inline void RequireBytes(Tensor t, const std::string& subject) {
  if (!Contains(kBytes, t.dtype()))
    throw Reject{"DTYPE", "quantised " + std::string(dtype_name(t.dtype())) + " is not done", subject};
  if (!IsQuantised(t)) throw Reject{"QUANT", "no scale", subject};
  if (t.quant()->kind != FBX_QUANT_PER_TENSOR && t.quant()->count != 1)
    throw Reject{"QUANT", "one scale per channel", subject};
  RequireScales(t, subject);
}

// For supports: the operand and result 0 are quantised bytes with one scale each, and of one dtype.
inline void RequireBytes(const Node& n, uint32_t operand) {
  RequireBytes(n.in(operand), "operand " + std::to_string(operand));
}
inline void RequireByteResult(const Node& n, uint32_t operand) {
  if (n.out_count() == 0 || !IsQuantised(n.out(0)))
    throw Reject{"QUANT", std::string(dtype_name(n.in(operand).dtype())) + " to a result that has no scale",
                 "result 0"};
  RequireBytes(n.out(0), "result 0");
  if (n.out(0).dtype() != n.in(operand).dtype())
    throw Reject{"DTYPE",
                 std::string(dtype_name(n.in(operand).dtype())) + " to " + dtype_name(n.out(0).dtype()),
                 "result 0"};
}

// For supports: result 0 means by its stored values what the operand does.
inline void RequireSameQuant(const Node& n, uint32_t operand) {
  if (n.out_count() == 0 || !IsQuantised(n.out(0)))
    throw Reject{"QUANT", std::string(dtype_name(n.in(operand).dtype())) + " to a result that has no scale",
                 "result 0"};
  if (!SameQuant(n.in(operand).quant(), n.out(0).quant()))
    throw Reject{"QUANT", "the result has another scale", "operand " + std::to_string(operand)};
}

// A positive real number as value * 2^(shift - 31) with value in [2^30, 2^31); and integers times it, rounded. The
// representation is that of Jacob et al., "Quantization and Training of Neural Networks for Efficient
// Integer-Arithmetic-Only Inference" (arXiv 1712.05877), section 2.2 and appendix B.
struct FixedPoint {
  int32_t value = 0;
  int32_t shift = 0;

  FixedPoint() = default;
  explicit FixedPoint(double real) {
    int exponent = 0;
    int64_t fraction = std::llround(std::frexp(real, &exponent) * 2147483648.0);
    if (fraction == int64_t{1} << 31) fraction /= 2, ++exponent;
    if (exponent < -31) return;
    value = static_cast<int32_t>(exponent > 30 ? INT32_MAX : fraction);
    shift = std::min(exponent, 30);
  }
};

// The upper half of twice the product (halves towards plus infinity), then a shift (halves away from zero): two roundings,
// which is how TFLite scales sums nearly everywhere. Saturates at 2^30, so that a zero point can be added.
FUSEBOX_INLINE inline int32_t Scaled(int32_t x, FixedPoint by) {
  const int32_t left = std::max(by.shift, 0), right = std::max(-by.shift, 0);
  const int64_t wide = std::clamp<int64_t>(static_cast<int64_t>(x) << left, INT32_MIN, INT32_MAX);
  const int32_t high = static_cast<int32_t>((wide * by.value + (int64_t{1} << 30)) >> 31);
  const int32_t mask = static_cast<int32_t>((int64_t{1} << right) - 1);
  const int32_t rounded = (high >> right) + ((high & mask) > (mask >> 1) + (high < 0));
  return std::clamp(rounded, -(1 << 30), 1 << 30);
}

// The value itself, or the nearest end of S.
template <class S>
FUSEBOX_INLINE inline S ClampTo(int32_t x) {
  return static_cast<S>(
      std::clamp<int32_t>(x, std::numeric_limits<S>::lowest(), std::numeric_limits<S>::max()));
}

// The nearest stored value: halves away from zero, out of range saturates, NaN is the zero point.
template <class S>
inline S Nearest(double real, Affine to) {
  const double q = std::round(real / to.scale) + to.zero;
  if (std::isnan(q)) return static_cast<S>(to.zero);
  return static_cast<S>(
      std::clamp<double>(q, std::numeric_limits<S>::lowest(), std::numeric_limits<S>::max()));
}

// The stored values that an activation lets through.
struct StoredRange {
  int32_t lowest, highest;
  StoredRange(Activation a, Tensor t) {
    const Affine q = AffineOf(t);
    lowest = t.dtype() == FBX_U8 ? 0 : -128;
    highest = t.dtype() == FBX_U8 ? 255 : 127;
    const auto stored = [&, low = lowest, high = highest](float real) {
      return static_cast<int32_t>(std::clamp<float>(std::round(real / q.scale) + static_cast<float>(q.zero),
                                                    static_cast<float>(low), static_cast<float>(high)));
    };
    if (a == Activation::kRelu || a == Activation::kRelu6) lowest = stored(0);
    if (a == Activation::kReluN1To1) lowest = stored(-1), highest = stored(1);
    if (a == Activation::kRelu6) highest = stored(6);
  }
  FUSEBOX_INLINE int32_t operator()(int32_t x) const { return std::min(std::max(x, lowest), highest); }
};

// For supports of quantised ops with an activation.
inline void RequireStoredActivation(const Node& n) {
  if (FusedActivation(n) == Activation::kTanh)
    throw Reject{"ATTR", "TANH of a quantised tensor", "attr fused_activation_function"};
}

// A function of one byte, worked out for all of them.
class ByteTable {
 public:
  ByteTable() = default;
  // f takes the real value of an operand element in double and gives that of the result.
  template <class F>
  ByteTable(Tensor in, Tensor out, const F& f) {
    const Affine from = AffineOf(in), to = AffineOf(out);
    Fill(in, out, [&](int32_t stored) {
      const double y = f(double{from.scale} * (stored - from.zero));
      return out.dtype() == FBX_U8 ? int32_t{Nearest<uint8_t>(y, to)} : int32_t{Nearest<int8_t>(y, to)};
    });
  }
  // f takes and gives stored values.
  template <class F>
  static ByteTable OfStored(Tensor in, Tensor out, const F& f) {
    ByteTable t;
    t.Fill(in, out, f);
    return t;
  }

  void Apply(const fbx_host* host, const void* in, void* out, int64_t count) const {
    const auto* x = static_cast<const uint8_t*>(in);
    auto* y = static_cast<uint8_t*>(out);
    parallel_for(host, static_cast<size_t>(count), 16384, [&](size_t begin, size_t end, uint32_t) {
      for (size_t i = begin; i < end; ++i) y[i] = entries_[x[i]];
    });
  }
  void Apply(const Node& n) const {
    Apply(n.host(), n.in(0).data<const void>(), n.out(0).data<void>(), n.in(0).count());
  }
  uint8_t operator[](uint8_t x) const { return entries_[x]; }

 private:
  template <class F>
  void Fill(Tensor in, Tensor, const F& f) {
    for (int32_t i = 0; i < 256; ++i)
      entries_[static_cast<size_t>(i)] =
          static_cast<uint8_t>(f(in.dtype() == FBX_U8 ? i : static_cast<int8_t>(i)));
  }
  std::array<uint8_t, 256> entries_{};
};

// For supports of a function of one byte.
inline void RequireByteMap(const Node& n) {
  RequireBytes(n, 0);
  RequireByteResult(n, 0);
}

}  // namespace fusebox::cpu
