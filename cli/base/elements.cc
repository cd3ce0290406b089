// SPDX-License-Identifier: Apache-2.0
#include "cli/base/elements.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "host/base/table.h"
#include "host/graph/npy.h"

namespace fusebox::cli {
namespace {

template <class T>
T Load(const Tensor& tensor, size_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

long double HalfToNumber(uint16_t bits) {
  const long double sign = bits >> 15 ? -1 : 1;
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  if (exponent == 31) return fraction ? std::nanl("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<long double>(fraction), -24);
  return sign * std::ldexp(static_cast<long double>(1024 + fraction), exponent - 25);
}

// i4, u4, i2: packed, low bits first.
long double Packed(const Tensor& tensor, size_t index, unsigned bits, bool is_signed) {
  const size_t bit = index * bits;
  const auto byte = std::to_integer<unsigned>(tensor.data.data()[bit / 8]);
  const unsigned value = byte >> (bit % 8) & ((1u << bits) - 1);
  const bool negative = is_signed && value >> (bits - 1);
  return negative ? static_cast<long double>(value) - (1u << bits) : value;
}

bool IsComplex(DType type) { return type == DType::kComplex64 || type == DType::kComplex128; }

std::string RealText(DType type, long double value) {
  if (type == DType::kF64 || type == DType::kComplex128)
    return fmt::format("{:.12g}", static_cast<double>(value));
  if (IsFloat(type) || type == DType::kComplex64) return fmt::format("{:.7g}", static_cast<double>(value));
  return fmt::format("{:.0f}", value);
}

nlohmann::ordered_json JsonOf(DType type, Number value) {
  if (IsComplex(type)) return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
  if (type == DType::kBool) return value.real() != 0;
  if (type == DType::kU64) return static_cast<uint64_t>(value.real());
  if (IsFloat(type)) {
    // RealText handles values that JSON lacks.
    if (!std::isfinite(value.real())) return RealText(type, value.real());
    return static_cast<double>(value.real());
  }
  return static_cast<int64_t>(value.real());
}

}  // namespace

size_t ElementCount(const Tensor& tensor) {
  const auto count = tensor.type.shape.element_count();
  if (!count) return 0;
  if (tensor.type.dtype == DType::kString) return static_cast<size_t>(*count);
  const auto bytes = ByteSize(tensor.type);
  return bytes && *bytes <= tensor.data.size() ? static_cast<size_t>(*count) : 0;
}

Number ElementAt(const Tensor& tensor, size_t index) {
  switch (tensor.type.dtype) {
    case DType::kF32: return Load<float>(tensor, index);
    case DType::kF64: return Load<double>(tensor, index);
    case DType::kF16: return HalfToNumber(Load<uint16_t>(tensor, index));
    case DType::kBF16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(tensor, index)) << 16);
    case DType::kI8: return Load<int8_t>(tensor, index);
    case DType::kI16: return Load<int16_t>(tensor, index);
    case DType::kI32: return Load<int32_t>(tensor, index);
    case DType::kI64: return Load<int64_t>(tensor, index);
    case DType::kU16: return Load<uint16_t>(tensor, index);
    case DType::kU32: return Load<uint32_t>(tensor, index);
    case DType::kU64: return Load<uint64_t>(tensor, index);
    case DType::kI4: return Packed(tensor, index, 4, true);
    case DType::kU4: return Packed(tensor, index, 4, false);
    case DType::kI2: return Packed(tensor, index, 2, true);
    case DType::kComplex64: return Number(Load<float>(tensor, 2 * index), Load<float>(tensor, 2 * index + 1));
    case DType::kComplex128:
      return Number(Load<double>(tensor, 2 * index), Load<double>(tensor, 2 * index + 1));
    default: return Load<uint8_t>(tensor, index);  // u8, bool, the bits of 8-bit floats
  }
}

Result<std::string> FirstElements(const Tensor& tensor, size_t limit) {
  const size_t count = ElementCount(tensor);
  const DType type = tensor.type.dtype;
  std::vector<std::string> strings;
  if (type == DType::kString) {
    FUSEBOX_ASSIGN(strings, UnpackStrings(tensor.data));
  }
  std::string out = "[";
  for (size_t i = 0; i < std::min(count, limit); ++i) {
    if (i > 0) out += ", ";
    if (type == DType::kString) {
      out += '"' + (i < strings.size() ? Printable(strings[i]) : "") + '"';
      continue;
    }
    const Number value = ElementAt(tensor, i);
    out += RealText(type, value.real());
    if (IsComplex(type)) out += (std::signbit(value.imag()) ? "" : "+") + RealText(type, value.imag()) + "j";
  }
  return out + (count > limit ? ", ...]" : "]");
}

Result<nlohmann::ordered_json> FirstElementsJson(const Tensor& tensor, size_t limit) {
  auto out = nlohmann::ordered_json::array();
  if (tensor.type.dtype == DType::kString) {
    FUSEBOX_ASSIGN(const auto strings, UnpackStrings(tensor.data));
    for (size_t i = 0; i < std::min(strings.size(), limit); ++i) out.push_back(strings[i]);
    return out;
  }
  for (size_t i = 0; i < std::min(ElementCount(tensor), limit); ++i)
    out.push_back(JsonOf(tensor.type.dtype, ElementAt(tensor, i)));
  return out;
}

}  // namespace fusebox::cli
