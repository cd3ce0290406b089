// SPDX-License-Identifier: Apache-2.0
// Dispatch from a run-time dtype to a compile-time type, and rejection of unsupported dtypes.
//
//   struct Kernel { static void supports(const Node& n) { RequireDtype(n, 0, kFloats); } ... };
//   Dispatch(kFloats, n.in(0).dtype(), [&]<class T>() { Run<T>(n); });
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <fusebox/kernel.hpp>

namespace fusebox::cpu {

using namespace sdk;

template <class... Ts>
struct Types {};

inline constexpr Types<float, double> kFloats;
inline constexpr Types<int32_t, int64_t> kIndices;
inline constexpr Types<float, double, int32_t, int64_t> kNumbers;
inline constexpr Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t> kIntegers;
inline constexpr Types<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                       uint64_t>
    kAllNumbers;
inline constexpr Types<bool> kBool;

template <class... Ts>
constexpr bool Contains(Types<Ts...>, fbx_dtype dtype) {
  return ((dtype_of<Ts> == dtype) || ...);
}

// Out of line, since each Dispatch has a call.
[[noreturn, gnu::noinline, gnu::cold]] inline void FailDtype(fbx_dtype dtype) {
  throw Error{FBX_UNSUPPORTED, "dtype " + std::string(dtype_name(dtype)) + " is unsupported"};
}
[[noreturn, gnu::noinline, gnu::cold]] inline void FailWidth(size_t bytes) {
  throw Error{FBX_UNSUPPORTED, "elements of " + std::to_string(bytes) + " bytes are unsupported"};
}

// Calls f.template operator()<T>() for the T of `dtype`; throws Error if the list does not contain it.
template <class... Ts, class F>
void Dispatch(Types<Ts...>, fbx_dtype dtype, F&& f) {
  const bool found = ((dtype_of<Ts> == dtype && (f.template operator()<Ts>(), true)) || ...);
  if (!found) FailDtype(dtype);
}

[[noreturn, gnu::noinline, gnu::cold]] inline void RejectDtype(fbx_dtype dtype, uint32_t operand) {
  throw Reject{"DTYPE", "dtype " + std::string(dtype_name(dtype)) + " is unsupported",
               "operand " + std::to_string(operand)};
}

// Tensors of floats, i32, i64 and bools may carry a quantization record left by a converter; it is ignored.
inline bool IsPlain(fbx_dtype dtype) {
  return dtype == FBX_F32 || dtype == FBX_F16 || dtype == FBX_BF16 || dtype == FBX_F64 || dtype == FBX_I32 ||
         dtype == FBX_I64 || dtype == FBX_BOOL;
}

// For supports: Reject unless the operand's dtype is in the list and it is not quantized.
template <class... Ts>
void RequireDtype(const Node& n, uint32_t operand, Types<Ts...> types) {
  if (!n.has_in(operand)) return;
  const Tensor t = n.in(operand);
  if (!Contains(types, t.dtype())) RejectDtype(t.dtype(), operand);
  if (!IsPlain(t.dtype()) && t.quant() && t.quant()->kind != FBX_QUANT_NONE)
    throw Reject{"DTYPE", "quantized " + std::string(dtype_name(t.dtype())) + " is unsupported",
                 "operand " + std::to_string(operand)};
}

// Throws unless both operands have the same dtype.
inline void SameDtype(const Node& n, uint32_t a, uint32_t b) {
  if (n.in(a).dtype() == n.in(b).dtype()) return;
  throw Error{
      FBX_INVALID,
      "dtypes differ: " + std::string(dtype_name(n.in(a).dtype())) + " and " + dtype_name(n.in(b).dtype()),
      "operand " + std::to_string(b)};
}

// Bytes per element; 0 for packed, string and opaque types.
inline size_t ElementSize(fbx_dtype dtype) {
  switch (dtype) {
    case FBX_I8:
    case FBX_U8:
    case FBX_BOOL:
    case FBX_F8E4M3FN:
    case FBX_F8E5M2: return 1;
    case FBX_F16:
    case FBX_BF16:
    case FBX_I16:
    case FBX_U16: return 2;
    case FBX_F32:
    case FBX_I32:
    case FBX_U32: return 4;
    case FBX_F64:
    case FBX_I64:
    case FBX_U64:
    case FBX_COMPLEX64: return 8;
    case FBX_COMPLEX128: return 16;
    default: return 0;
  }
}

// Converters that compute a scale twice write values that differ in the last bits.
inline bool SameScale(float a, float b) {
  return a == b || std::abs(a - b) <= 1e-6f * std::max(std::abs(a), std::abs(b));
}

// True if quantized values have the same meaning under both quantizations.
inline bool SameQuant(const fbx_quant* a, const fbx_quant* b) {
  const bool none_a = !a || a->kind == FBX_QUANT_NONE;
  const bool none_b = !b || b->kind == FBX_QUANT_NONE;
  if (none_a || none_b) return none_a && none_b;
  if (a->kind != b->kind || a->count != b->count) return false;
  for (uint32_t i = 0; i < a->count; ++i)
    if (!SameScale(a->scales[i], b->scales[i]) || a->zero_points[i] != b->zero_points[i]) return false;
  return true;
}

// For supports of an op that moves elements without reading them.
inline void RequireMovable(const Node& n, uint32_t operand, uint32_t result = 0) {
  if (!n.has_in(operand)) return;
  const Tensor t = n.in(operand);
  if (ElementSize(t.dtype()) == 0) RejectDtype(t.dtype(), operand);
  if (result < n.out_count() && n.out(result).dtype() == t.dtype() && !IsPlain(t.dtype()) &&
      !SameQuant(t.quant(), n.out(result).quant()))
    throw Reject{"DTYPE", "requantizing " + std::string(dtype_name(t.dtype())) + " is unsupported",
                 "operand " + std::to_string(operand)};
}

struct Bits128 {
  uint64_t low, high;
};

// Calls f.template operator()<T>() for an unsigned T of this size, to move elements of any type.
template <class F>
void DispatchWidth(size_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    case 16: return f.template operator()<Bits128>();
    default: FailWidth(bytes);
  }
}

}  // namespace fusebox::cpu
