// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/snappy.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "converter/import/saved_model/byte_reader.h"

namespace fusebox::saved_model {
namespace {

constexpr uint64_t kMaxExpansion = 64;  // a copy of 64 bytes takes at least one

std::optional<uint64_t> LittleEndian(ByteReader& reader, int size) {
  std::optional<std::string_view> bytes = reader.TakeText(size);
  if (!bytes) return std::nullopt;
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; --i) value = (value << 8) | static_cast<uint8_t>((*bytes)[i]);
  return value;
}

// tag: a length of up to 60, or the number of length bytes that follow.
bool AppendLiteral(uint64_t tag, ByteReader& reader, std::string& out) {
  std::optional<uint64_t> length = tag >> 2;
  if (*length >= 60) length = LittleEndian(reader, static_cast<int>(*length - 59));
  std::optional<std::string_view> literal = length ? reader.TakeText(*length + 1) : std::nullopt;
  if (literal) out.append(*literal);
  return literal.has_value();
}

// A copy may overlap its own output.
bool AppendCopy(uint64_t tag, ByteReader& reader, std::string& out) {
  bool is_short = (tag & 3) == 1;
  std::optional<uint64_t> offset = LittleEndian(reader, is_short ? 1 : (tag & 3) == 2 ? 2 : 4);
  if (!offset) return false;
  uint64_t length = is_short ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
  if (is_short) *offset |= (tag >> 5) << 8;
  if (*offset == 0 || *offset > out.size()) return false;
  for (uint64_t i = 0; i < length; ++i) out.push_back(out[out.size() - *offset]);
  return true;
}

}  // namespace

Result<std::string> DecodeSnappy(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  std::optional<uint64_t> size = reader.Varint64();
  if (!size || *size > bytes.size() * kMaxExpansion) return Invalid("damaged compressed block");
  std::string out;
  out.reserve(*size);
  while (!reader.done()) {
    uint64_t tag = *LittleEndian(reader, 1);
    bool appended = (tag & 3) == 0 ? AppendLiteral(tag, reader, out) : AppendCopy(tag, reader, out);
    if (!appended || out.size() > *size) return Invalid("damaged compressed block");
  }
  if (out.size() != *size) return Invalid("truncated compressed block");
  return out;
}

}  // namespace fusebox::saved_model
