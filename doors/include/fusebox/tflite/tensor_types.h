/* SPDX-License-Identifier: Apache-2.0 */
// The element type of a C++ type.
#ifndef FUSEBOX_TFLITE_TENSOR_TYPES_H_
#define FUSEBOX_TFLITE_TENSOR_TYPES_H_

#include <complex>
#include <cstdint>

#include "fusebox/tflite/c/common.h"

namespace tflite {
namespace detail {

template <class T>
struct TypeOf {
  static constexpr TfLiteType value = kTfLiteNoType;
};
template <TfLiteType kType>
struct Is {
  static constexpr TfLiteType value = kType;
};
template <>
struct TypeOf<float> : Is<kTfLiteFloat32> {};
template <>
struct TypeOf<double> : Is<kTfLiteFloat64> {};
template <>
struct TypeOf<TfLiteFloat16> : Is<kTfLiteFloat16> {};
template <>
struct TypeOf<TfLiteBFloat16> : Is<kTfLiteBFloat16> {};
template <>
struct TypeOf<int8_t> : Is<kTfLiteInt8> {};
template <>
struct TypeOf<uint8_t> : Is<kTfLiteUInt8> {};
template <>
struct TypeOf<int16_t> : Is<kTfLiteInt16> {};
template <>
struct TypeOf<uint16_t> : Is<kTfLiteUInt16> {};
template <>
struct TypeOf<int32_t> : Is<kTfLiteInt32> {};
template <>
struct TypeOf<uint32_t> : Is<kTfLiteUInt32> {};
template <>
struct TypeOf<int64_t> : Is<kTfLiteInt64> {};
template <>
struct TypeOf<uint64_t> : Is<kTfLiteUInt64> {};
template <>
struct TypeOf<bool> : Is<kTfLiteBool> {};
template <>
struct TypeOf<std::complex<float>> : Is<kTfLiteComplex64> {};
template <>
struct TypeOf<std::complex<double>> : Is<kTfLiteComplex128> {};

}  // namespace detail

template <class T>
constexpr TfLiteType typeToTfLiteType() {
  return detail::TypeOf<T>::value;
}

}  // namespace tflite

#endif
