// SPDX-License-Identifier: Apache-2.0
// Value: a view of a tensor of a session. Valid as long as c.h states for the function that returned it.
#pragma once

#include <complex>
#include <cstddef>
#include <span>
#include <vector>

#include "fusebox/detail/c_call.hpp"

namespace fusebox {
inline namespace v1 {

// The element type of T; FBX_DTYPE_NONE: none. 16-bit floats are read as uint16_t by bytes().
template <class T>
inline constexpr fbx_dtype kElement = FBX_DTYPE_NONE;
template <>
inline constexpr fbx_dtype kElement<float> = FBX_F32;
template <>
inline constexpr fbx_dtype kElement<double> = FBX_F64;
template <>
inline constexpr fbx_dtype kElement<int8_t> = FBX_I8;
template <>
inline constexpr fbx_dtype kElement<int16_t> = FBX_I16;
template <>
inline constexpr fbx_dtype kElement<int32_t> = FBX_I32;
template <>
inline constexpr fbx_dtype kElement<int64_t> = FBX_I64;
template <>
inline constexpr fbx_dtype kElement<uint8_t> = FBX_U8;
template <>
inline constexpr fbx_dtype kElement<uint16_t> = FBX_U16;
template <>
inline constexpr fbx_dtype kElement<uint32_t> = FBX_U32;
template <>
inline constexpr fbx_dtype kElement<uint64_t> = FBX_U64;
template <>
inline constexpr fbx_dtype kElement<bool> = FBX_BOOL;
template <>
inline constexpr fbx_dtype kElement<std::complex<float>> = FBX_COMPLEX64;
template <>
inline constexpr fbx_dtype kElement<std::complex<double>> = FBX_COMPLEX128;

class Value {
 public:
  std::string_view name() const { return tensor_.name; }
  fbx_dtype dtype() const { return tensor_.dtype; }
  int rank() const { return tensor_.rank; }  // -1: not known yet
  // The dims, -1 for a dim that is not known yet.
  std::span<const int64_t> dims() const {
    return {tensor_.dims, tensor_.rank > 0 ? static_cast<size_t>(tensor_.rank) : 0};
  }
  // Returns no bytes if there is no value, or if it has no elements.
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(tensor_.data), tensor_.data != nullptr ? tensor_.bytes : 0};
  }
  // Per-tensor or per-axis quantization; no scales if the value is not quantized.
  std::span<const float> scales() const { return {tensor_.scales, tensor_.scale_count}; }
  std::span<const int64_t> zero_points() const {
    return {tensor_.zero_points, tensor_.zero_points != nullptr ? tensor_.scale_count : 0};
  }
  std::string type() const {  // "f32[1,?]"
    std::string out = std::string(fusebox_dtype_name(tensor_.dtype)) + "[";
    for (const int64_t dim : dims()) {
      if (out.back() != '[') out += ',';
      out += dim < 0 ? "?" : std::to_string(dim);
    }
    return out + (rank() < 0 ? "*]" : "]");
  }

  // The elements. Error: another element type.
  template <class T>
  Result<std::span<const T>> as() const {
    static_assert(kElement<T> != FBX_DTYPE_NONE, "no element type is a T; use bytes()");
    if (dtype() != kElement<T>)
      return Error{Code::kInvalid,
                   std::string(name()) + ": is " + type() + ", not " + fusebox_dtype_name(kElement<T>)};
    return std::span<const T>(static_cast<const T*>(tensor_.data), bytes().size() / sizeof(T));
  }
  // The elements of a string tensor.
  Result<std::vector<std::string_view>> strings() const {
    size_t count = 1;
    for (const int64_t dim : dims()) count *= dim < 0 ? 0 : static_cast<size_t>(dim);
    if (tensor_.data == nullptr) count = 0;
    std::vector<std::string_view> out;
    for (size_t i = 0; i < count; ++i) {
      const char* text = nullptr;
      size_t length = 0;
      const Status status = detail::Call(
          [&](char** error) { return fusebox_tensor_string(&tensor_, i, &text, &length, error); });
      if (!status) return status.error();
      out.emplace_back(text, length);
    }
    return out;
  }
  const fusebox_tensor& get() const { return tensor_; }

 private:
  friend class Session;
  fusebox_tensor tensor_ = FUSEBOX_TENSOR;
};

}  // namespace v1
}  // namespace fusebox
