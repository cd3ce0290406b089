// SPDX-License-Identifier: Apache-2.0
#include "host/graph/types.h"

#include <array>
#include <cstring>
#include <utility>

namespace fusebox {
namespace {

constexpr int64_t kMostDimsOfNothing = int64_t{1} << 28;

struct DTypeInfo {
  DType type;
  std::string_view name;
  size_t bits;
};

constexpr DTypeInfo kDTypes[] = {
    {DType::kNone, "none", 0},
    {DType::kF32, "f32", 32},
    {DType::kF16, "f16", 16},
    {DType::kBF16, "bf16", 16},
    {DType::kF64, "f64", 64},
    {DType::kI8, "i8", 8},
    {DType::kI16, "i16", 16},
    {DType::kI32, "i32", 32},
    {DType::kI64, "i64", 64},
    {DType::kU8, "u8", 8},
    {DType::kU16, "u16", 16},
    {DType::kU32, "u32", 32},
    {DType::kU64, "u64", 64},
    {DType::kBool, "bool", 8},
    {DType::kString, "string", 0},
    {DType::kComplex64, "c64", 64},
    {DType::kComplex128, "c128", 128},
    {DType::kI4, "i4", 4},
    {DType::kU4, "u4", 4},
    {DType::kI2, "i2", 2},
    {DType::kF8E4M3FN, "f8e4m3fn", 8},
    {DType::kF8E5M2, "f8e5m2", 8},
    {DType::kResource, "resource", 0},
    {DType::kVariant, "variant", 0},
};

const DTypeInfo& InfoOf(DType type) {
  const auto index = static_cast<size_t>(type);
  return kDTypes[index < std::size(kDTypes) ? index : 0];
}

}  // namespace

std::string_view Name(DType type) { return InfoOf(type).name; }

size_t BitsOf(DType type) { return InfoOf(type).bits; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

bool Shape::is_static() const {
  if (!ranked_) return false;
  for (const int64_t dim : dims_) {
    if (dim < 0) return false;
  }
  return true;
}

std::optional<int64_t> Shape::element_count() const {
  if (!is_static()) return std::nullopt;
  int64_t count = 1;
  bool empty = false;
  for (const int64_t dim : dims_) {
    if (dim == 0) empty = true;
    else if (__builtin_mul_overflow(count, dim, &count)) return std::nullopt;
  }
  if (!empty) return count;
  // A loop over the other dims has no data that bounds its time.
  return count <= kMostDimsOfNothing ? std::optional<int64_t>(0) : std::nullopt;
}

std::string ToString(const Shape& shape) {
  if (!shape.ranked()) return "[*]";
  std::string text = "[";
  for (const int64_t dim : shape.dims()) {
    if (text.size() > 1) text += ',';
    text += dim < 0 ? "?" : std::to_string(dim);
  }
  return text + "]";
}

std::string ToString(const Type& type) { return std::string(Name(type.dtype)) + ToString(type.shape); }

std::optional<size_t> ByteSize(const Type& type) {
  const size_t bits = BitsOf(type.dtype);
  const auto count = type.shape.element_count();
  int64_t total = 0;
  if (bits == 0 || !count || __builtin_mul_overflow(*count, static_cast<int64_t>(bits), &total))
    return std::nullopt;
  return static_cast<size_t>(total / 8 + (total % 8 != 0));
}

bool Compatible(const Type& is, const Type& expected) {
  if (is.dtype != expected.dtype) return false;
  if (!is.shape.ranked() || !expected.shape.ranked()) return true;
  if (is.shape.rank() != expected.shape.rank()) return false;
  for (size_t i = 0; i < is.shape.dims().size(); ++i) {
    if (is.shape[i] >= 0 && expected.shape[i] >= 0 && is.shape[i] != expected.shape[i]) return false;
  }
  return true;
}

bool Tensor::operator==(const Tensor& other) const {
  return type == other.type && data.size() == other.data.size() &&
         (data.size() == 0 || std::memcmp(data.data(), other.data.data(), data.size()) == 0);
}

}  // namespace fusebox
