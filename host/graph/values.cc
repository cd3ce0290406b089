// SPDX-License-Identifier: Apache-2.0
#include "host/graph/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstring>

#include "host/graph/half.h"
#include "host/graph/npy.h"

namespace fusebox {
namespace {

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double value)  // cuts the significand
      : bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16)) {}
  explicit operator double() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
constexpr bool kIsComplex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

// Passes a value of the C++ type of the elements to `visit`. Returns false if they have none.
template <class Visit>
bool WithElement(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF32: visit(float{}); break;
    case DType::kF64: visit(double{}); break;
    case DType::kF16: visit(Half{}); break;
    case DType::kBF16: visit(BFloat16{}); break;
    case DType::kI8: visit(int8_t{}); break;
    case DType::kI16: visit(int16_t{}); break;
    case DType::kI32: visit(int32_t{}); break;
    case DType::kI64: visit(int64_t{}); break;
    case DType::kU8:
    case DType::kBool: visit(uint8_t{}); break;
    case DType::kU16: visit(uint16_t{}); break;
    case DType::kU32: visit(uint32_t{}); break;
    case DType::kU64: visit(uint64_t{}); break;
    case DType::kComplex64: visit(std::complex<float>{}); break;
    case DType::kComplex128: visit(std::complex<double>{}); break;
    default: return false;
  }
  return true;
}

template <class T>
T Load(const Buffer& data, size_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool IsPacked(DType dtype) { return dtype == DType::kI4 || dtype == DType::kU4 || dtype == DType::kI2; }

long double LoadPacked(const Tensor& tensor, size_t index) {
  const size_t bits = BitsOf(tensor.type.dtype);
  const size_t bit = index * bits;
  const auto byte = std::to_integer<unsigned>(tensor.data.data()[bit / 8]);
  const unsigned value = byte >> (bit % 8) & ((1u << bits) - 1);
  const bool negative = tensor.type.dtype != DType::kU4 && value >> (bits - 1);
  return negative ? static_cast<long double>(value) - (1u << bits) : value;
}

void FillPacked(const Type& type, std::span<std::byte> memory,
                const std::function<int64_t(size_t)>& integer) {
  const size_t bits = BitsOf(type.dtype);
  const int64_t mask = (1 << bits) - 1;
  std::ranges::fill(memory, std::byte{0});
  const auto count = static_cast<size_t>(type.shape.element_count().value_or(0));
  for (size_t i = 0; i < std::min(count, memory.size() * 8 / bits); ++i)
    memory[i * bits / 8] |= static_cast<std::byte>((integer(i) & mask) << (i * bits % 8));
}

// Bits of the significand, for floats and parts of complex numbers.
int SignificandBits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kComplex128: return 53;
    case DType::kF16: return 11;
    case DType::kBF16: return 8;
    default: return 24;
  }
}

}  // namespace

bool IsNumeric(DType dtype) {
  return IsPacked(dtype) || WithElement(dtype, [](auto) {});
}

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

size_t ElementCount(const Tensor& tensor) {
  const auto count = tensor.type.shape.element_count();
  if (!count) return 0;
  if (tensor.type.dtype == DType::kString) return static_cast<size_t>(*count);
  const auto bytes = ByteSize(tensor.type);
  return bytes && *bytes <= tensor.data.size() ? static_cast<size_t>(*count) : 0;
}

ElementNumber ElementAt(const Tensor& tensor, size_t index) {
  if (IsPacked(tensor.type.dtype)) return LoadPacked(tensor, index);
  ElementNumber out;
  const auto read = [&]<class T>(T) {
    const T value = Load<T>(tensor.data, index);
    if constexpr (kIsComplex<T>) out = value;
    else if constexpr (std::is_integral_v<T>) out = static_cast<long double>(value);
    else out = static_cast<double>(value);
  };
  if (!WithElement(tensor.type.dtype, read)) read(uint8_t{});
  return out;
}

void ReadDoubles(const Tensor& tensor, size_t begin, std::span<double> out) {
  const auto read = [&]<class T>(T) {
    for (size_t i = 0; i < out.size(); ++i) {
      const T value = Load<T>(tensor.data, begin + i);
      if constexpr (kIsComplex<T>) out[i] = value.real();
      else out[i] = static_cast<double>(value);
    }
  };
  if (WithElement(tensor.type.dtype, read)) return;
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(ElementAt(tensor, begin + i).real());
}

std::vector<double> ToDoubles(const Tensor& tensor) {
  const DType dtype = tensor.type.dtype;
  std::vector<double> out(IsNumeric(dtype) && !IsComplex(dtype) ? ElementCount(tensor) : 0);
  ReadDoubles(tensor, 0, out);
  return out;
}

std::string Coordinates(const Shape& shape, size_t index) {
  std::vector<size_t> at(shape.dims().size());
  for (size_t d = at.size(); d-- > 0;) {
    const auto dim = static_cast<size_t>(std::max<int64_t>(shape[d], 1));
    at[d] = index % dim;
    index /= dim;
  }
  return fmt::format("[{}]", fmt::join(at, ","));
}

void FillElements(const Type& type, std::span<std::byte> memory, const std::function<double(size_t)>& real,
                  const std::function<int64_t(size_t)>& integer) {
  if (IsPacked(type.dtype)) return FillPacked(type, memory, integer);
  WithElement(type.dtype, [&]<class T>(T value) {
    for (size_t i = 0; i < memory.size() / sizeof(T); ++i) {
      if constexpr (kIsComplex<T>) {
        const double first = real(2 * i);
        value = T(std::complex(first, real(2 * i + 1)));
      } else if constexpr (std::is_integral_v<T>) {
        value = static_cast<T>(integer(i));
      } else {
        value = static_cast<T>(real(i));
      }
      std::memcpy(memory.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

uint64_t SplitMix::Next() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

Result<Tensor> SeededValue(const Type& declared, uint64_t seed, uint64_t index) {
  Type type = declared;
  if (!type.shape.ranked())
    return Unsupported("cannot generate a value of unknown rank; use `fusebox run --input`");
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? 1 : dim;
  if (type.dtype == DType::kString) {
    SplitMix random((seed << 20) + index);
    const auto count = type.shape.element_count();
    if (!count || *count > (1 << 24)) return Unsupported(ToString(type) + " is too large");
    std::vector<std::string> strings(static_cast<size_t>(*count));
    for (std::string& text : strings) text = "s" + std::to_string(random.Next() >> 62);
    return Tensor{type, PackStrings(strings)};
  }
  if (!IsNumeric(type.dtype))
    return Unsupported("cannot generate values of type " + ToString(type) + "; use `fusebox run --input`");
  if (!ByteSize(type)) return Unsupported(ToString(type) + " is too large");
  return Tensor{type, {}};
}

void FillSeeded(const Type& declared, uint64_t seed, uint64_t index, std::span<std::byte> memory) {
  const Type type{IsPacked(declared.dtype) ? DType::kU8 : declared.dtype, declared.shape};
  const int significand = SignificandBits(type.dtype);
  const size_t bits = BitsOf(type.dtype);
  SplitMix random((seed << 20) + index);
  const auto real = [&](size_t) {
    return std::ldexp(static_cast<double>(random.Next() >> (64 - significand)), 1 - significand) - 1;
  };
  const auto integer = [&](size_t i) {
    if (type.dtype == DType::kBool) return static_cast<int64_t>(i % 2 == 0);
    return static_cast<int64_t>(random.Next() >> (bits > 16 ? 62 : 64 - bits));
  };
  FillElements(type, memory, real, integer);
}

}  // namespace fusebox
