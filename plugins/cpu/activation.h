// SPDX-License-Identifier: Apache-2.0
// The fused activation of an op: the enumerated option "fused_activation_function".
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <fusebox/kernel.hpp>

namespace fusebox::cpu {

enum class Activation { kNone, kRelu, kReluN1To1, kRelu6, kTanh };

// Throws Reject for SIGN_BIT (no TFLite op runs it as a fused activation) and for unknown names.
inline Activation FusedActivation(const Node& node) {
  const std::string_view name = node.attrs().s("fused_activation_function", "NONE");
  if (name == "NONE") return Activation::kNone;
  if (name == "RELU") return Activation::kRelu;
  if (name == "RELU_N1_TO_1") return Activation::kReluN1To1;
  if (name == "RELU6") return Activation::kRelu6;
  if (name == "TANH") return Activation::kTanh;
  throw Reject{"ATTR", "fused activation " + std::string(name) + " is unsupported",
               "attr fused_activation_function"};
}

// For supports: the option is supported, for this operand's dtype.
inline void RequireActivation(const Node& node, uint32_t operand) {
  const fbx_dtype dtype = node.in(operand).dtype();
  if (FusedActivation(node) == Activation::kTanh && dtype != FBX_F32 && dtype != FBX_F64)
    throw Reject{"ATTR", "TANH of " + std::string(dtype_name(dtype)), "attr fused_activation_function"};
}

// Propagates NaN, like max(x, lowest) with x first.
template <class T>
[[gnu::always_inline]] inline T Clamp(T x, T lowest, T highest) {
  x = x < lowest ? lowest : x;
  return x > highest ? highest : x;
}

// The range an activation clamps to; kNone and kTanh: all of T, including infinities.
template <class T>
struct ActivationRange {
  T lowest, highest;
  explicit ActivationRange(Activation a) {
    using Limits = std::numeric_limits<T>;
    lowest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
    highest = Limits::has_infinity ? Limits::infinity() : Limits::max();
    if (a == Activation::kRelu || a == Activation::kRelu6) lowest = T(0);
    if (a == Activation::kReluN1To1) lowest = T(-1), highest = T(1);
    if (a == Activation::kRelu6) highest = T(6);
  }
};

// Applies an activation in place. T: float, double, int32_t, int64_t (TANH: floats only).
template <class T>
inline void Activate(Activation activation, T* values, size_t count) {
  if (activation == Activation::kNone) return;
  if (activation == Activation::kTanh) {
    if constexpr (std::is_floating_point_v<T>) {
      for (size_t i = 0; i < count; ++i) values[i] = std::tanh(values[i]);
    }
    return;
  }
  const ActivationRange<T> range(activation);
  for (size_t i = 0; i < count; ++i) values[i] = Clamp(values[i], range.lowest, range.highest);
}

}  // namespace fusebox::cpu
