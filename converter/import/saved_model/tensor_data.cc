// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/tensor_data.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "converter/import/saved_model/byte_reader.h"
#include "converter/import/saved_model/crc32c.h"

namespace fusebox::saved_model {
namespace {

struct TypeRow {
  tf::DataType dtype;
  std::string_view name;
  size_t size;
};

constexpr auto kTypes = std::to_array<TypeRow>({
    {tf::DT_FLOAT, "float32", 4},
    {tf::DT_DOUBLE, "float64", 8},
    {tf::DT_INT32, "int32", 4},
    {tf::DT_UINT8, "uint8", 1},
    {tf::DT_INT16, "int16", 2},
    {tf::DT_INT8, "int8", 1},
    {tf::DT_STRING, "string", 0},
    {tf::DT_COMPLEX64, "complex64", 8},
    {tf::DT_INT64, "int64", 8},
    {tf::DT_BOOL, "bool", 1},
    {tf::DT_QINT8, "qint8", 1},
    {tf::DT_QUINT8, "quint8", 1},
    {tf::DT_QINT32, "qint32", 4},
    {tf::DT_BFLOAT16, "bfloat16", 2},
    {tf::DT_QINT16, "qint16", 2},
    {tf::DT_QUINT16, "quint16", 2},
    {tf::DT_UINT16, "uint16", 2},
    {tf::DT_COMPLEX128, "complex128", 16},
    {tf::DT_HALF, "float16", 2},
    {tf::DT_RESOURCE, "resource", 0},
    {tf::DT_VARIANT, "variant", 0},
    {tf::DT_UINT32, "uint32", 4},
    {tf::DT_UINT64, "uint64", 8},
    {tf::DT_FLOAT8_E5M2, "float8_e5m2", 1},
    {tf::DT_FLOAT8_E4M3FN, "float8_e4m3fn", 1},
    {tf::DT_INT4, "int4", 1},
    {tf::DT_UINT4, "uint4", 1},
    {tf::DT_INT2, "int2", 1},
});

const TypeRow* FindType(tf::DataType dtype) {
  auto row = std::ranges::find(kTypes, dtype, &TypeRow::dtype);
  return row == kTypes.end() ? nullptr : &*row;
}

}  // namespace

size_t ElementSize(tf::DataType dtype) {
  const TypeRow* row = FindType(dtype);
  return row ? row->size : 0;
}

std::string DataTypeName(tf::DataType dtype) {
  const TypeRow* row = FindType(dtype);
  return row ? std::string(row->name) : "type " + std::to_string(static_cast<int>(dtype));
}

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape)
    text += (text.size() > 1 ? "," : "") + (dim < 0 ? std::string("?") : std::to_string(dim));
  return text + "]";
}

Result<int64_t> ElementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0) return Invalid("it has a dimension of " + std::to_string(dim));
    if (__builtin_mul_overflow(count, dim, &count)) return Invalid("its shape has too many elements");
  }
  return count;
}

Result<std::vector<std::string>> DecodeStrings(std::span<const std::byte> bytes, int64_t count,
                                               uint32_t masked_crc) {
  if (static_cast<uint64_t>(count) > bytes.size())
    return Invalid("too short for " + std::to_string(count) + " strings");
  ByteReader reader(bytes);
  std::vector<uint64_t> lengths;
  uint32_t crc = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::optional<uint64_t> length = reader.Varint64();
    if (!length || *length > bytes.size())
      return Invalid("length of string " + std::to_string(i) + " is damaged");
    crc = Crc32c(std::as_bytes(std::span(&*length, 1)).first(*length > UINT32_MAX ? 8 : 4), crc);
    lengths.push_back(*length);
  }
  std::optional<std::span<const std::byte>> stored = reader.Take(sizeof(uint32_t));
  if (!stored) return Invalid("truncated after the lengths of its strings");
  if (*ByteReader(*stored).Fixed32() != MaskCrc(crc))
    return Invalid("checksum of the string lengths does not match");
  crc = Crc32c(reader.rest(), Crc32c(*stored, crc));
  if (MaskCrc(crc) != masked_crc) return Invalid("checksum of the strings does not match");
  std::vector<std::string> strings;
  for (uint64_t length : lengths) {
    std::optional<std::string_view> text = reader.TakeText(length);
    if (!text) return Invalid("truncated within its strings");
    strings.emplace_back(*text);
  }
  if (!reader.done()) return Invalid("bytes follow its last string");
  return strings;
}

}  // namespace fusebox::saved_model
