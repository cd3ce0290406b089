// SPDX-License-Identifier: Apache-2.0
// ByteReader: a bounds-checked cursor over bytes. A read past the end returns nullopt.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace fusebox::saved_model {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  std::span<const std::byte> rest() const { return rest_; }

  std::optional<std::span<const std::byte>> Take(uint64_t size) {
    if (size > rest_.size()) return std::nullopt;
    std::span<const std::byte> taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  std::optional<std::string_view> TakeText(uint64_t size) {
    std::optional<std::span<const std::byte>> taken = Take(size);
    if (!taken) return std::nullopt;
    return std::string_view(reinterpret_cast<const char*>(taken->data()), taken->size());
  }

  // 7 bits per byte, low bits first; the top bit marks that more bytes follow.
  std::optional<uint64_t> Varint64() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      std::optional<std::span<const std::byte>> taken = Take(1);
      if (!taken) return std::nullopt;
      uint64_t bits = std::to_integer<uint64_t>((*taken)[0]);
      value |= (bits & 0x7f) << shift;
      if (bits < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<uint32_t> Fixed32() { return Fixed<uint32_t>(); }
  std::optional<uint64_t> Fixed64() { return Fixed<uint64_t>(); }

 private:
  // Little-endian.
  template <class T>
  std::optional<T> Fixed() {
    std::optional<std::span<const std::byte>> taken = Take(sizeof(T));
    if (!taken) return std::nullopt;
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<T>(std::to_integer<T>((*taken)[i]) << (8 * i));
    return value;
  }

  std::span<const std::byte> rest_;
};

}  // namespace fusebox::saved_model
