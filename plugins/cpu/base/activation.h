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

#include "plugins/common/activation.h"

namespace fusebox::cpu {

using namespace sdk;

using common::Activation;
using common::Clamp;
using common::FusedActivation;

// For supports: the option is supported, for this operand's dtype.
inline void RequireActivation(const Node& node, uint32_t operand) {
  const fbx_dtype dtype = node.in(operand).dtype();
  if (FusedActivation(node) == Activation::kTanh && dtype != FBX_F32 && dtype != FBX_F64)
    throw Reject{"ATTR", "TANH of " + std::string(dtype_name(dtype)), "attr fused_activation_function"};
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
    if (a == Activation::kReluN1To1) {
      lowest = T(-1);
      highest = T(1);
    }
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
