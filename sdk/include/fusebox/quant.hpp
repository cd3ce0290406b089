// SPDX-License-Identifier: Apache-2.0
// Checks of the scales and zero points of a quantized tensor. They are vectorized: filters have thousands of
// channels, and every open checks them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fusebox/base.hpp"

namespace fusebox::sdk {
inline namespace v1 {

namespace detail {

// The bitwise or of leave_wrong applied to each value, read as type U. leave_wrong is called with U and with
// vectors of U.
template <class U, class F>
U all_wrong(const void* values, uint32_t count, const F& leave_wrong) {
  using Vector [[gnu::vector_size(64)]] = U;
  constexpr size_t lanes = sizeof(Vector) / sizeof(U);
  const auto* const from = static_cast<const unsigned char*>(values);
  Vector vector;
  Vector some{};
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    std::memcpy(&vector, from + i * sizeof(U), sizeof vector);
    leave_wrong(vector);
    some |= vector;
  }
  U one;
  U all = 0;
  for (size_t lane = 0; lane < lanes; ++lane) all |= some[lane];
  for (; i < count; ++i) {
    std::memcpy(&one, from + i * sizeof(U), sizeof one);
    leave_wrong(one);
    all |= one;
  }
  return all;
}

inline constexpr uint32_t largest_float = 0x7f7fffff;

}  // namespace detail

// All scales are finite and >= 0. -0 counts as negative.
inline bool scales_are_finite(const fbx_quant& q) {
  const auto leave_wrong = [](auto& bits) { bits |= detail::largest_float - bits; };  // in the highest bit
  return detail::all_wrong<uint32_t>(q.scales, q.count, leave_wrong) >> 31 == 0;
}

// All scales are finite and > 0.
inline bool scales_are_positive(const fbx_quant& q) {
  const auto leave_wrong = [](auto& bits) { bits |= (bits - 1) | (detail::largest_float - bits); };
  return detail::all_wrong<uint32_t>(q.scales, q.count, leave_wrong) >> 31 == 0;
}

// All zero points are 0.
inline bool is_symmetric(const fbx_quant& q) {
  return detail::all_wrong<uint64_t>(q.zero_points, q.count, [](auto&) {}) == 0;
}

}  // namespace v1
}  // namespace fusebox::sdk
