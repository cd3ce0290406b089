// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/slice_key.h"

#include <bit>
#include <cstdint>

namespace fusebox::saved_model {
namespace {

constexpr int64_t kWholeDimension = -1;

std::string BigEndian(uint64_t value, int size) {
  std::string bytes(size, '\0');
  for (int i = size - 1; i >= 0; --i, value >>= 8) bytes[i] = static_cast<char>(value & 0xff);
  return bytes;
}

// One byte with the number of significant bytes, then these bytes.
void AppendNumber(uint64_t value, std::string& out) {
  int size = (std::bit_width(value) + 7) / 8;
  out += static_cast<char>(size);
  out += BigEndian(value, size);
}

void AppendText(std::string_view text, std::string& out) {
  for (char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out += '\0';
  out += '\1';
}

// In n bytes, the first n bits are ones (zeros for a negative number) and the sign bit follows, so that
// bytewise order is numeric order.
void AppendSigned(int64_t value, std::string& out) {
  uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  int size = std::bit_width(magnitude) / 7 + 1;
  std::string bytes(size > 8 ? size - 8 : 0, value < 0 ? '\xff' : '\0');
  bytes += BigEndian(static_cast<uint64_t>(value), size > 8 ? 8 : size);
  for (int i = 0; i < size; ++i) bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (0x80 >> (i % 8)));
  out += bytes;
}

}  // namespace

std::string SliceKey(std::string_view tensor, const tf::TensorSlice& slice) {
  std::string key;
  AppendNumber(0, key);
  AppendText(tensor, key);
  AppendNumber(static_cast<uint64_t>(slice.extent_size()), key);
  for (const tf::TensorSlice::Extent& extent : slice.extent()) {
    AppendSigned(extent.start(), key);
    AppendSigned(
        extent.has_length_case() == tf::TensorSlice::Extent::kLength ? extent.length() : kWholeDimension,
        key);
  }
  return key;
}

}  // namespace fusebox::saved_model
