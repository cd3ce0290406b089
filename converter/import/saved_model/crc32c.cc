// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <sys/platform/x86.h>
#endif

namespace fusebox::saved_model {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82f63b78u & (0u - (crc & 1)));
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t UpdateByTable(std::span<const std::byte> bytes, uint32_t crc) {
  for (std::byte b : bytes) crc = kTable[(crc ^ static_cast<uint32_t>(b)) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t UpdateByInstruction(std::span<const std::byte> bytes,
                                                               uint32_t crc) {
  uint64_t wide = crc;
  size_t i = 0;
  for (; i + sizeof(uint64_t) <= bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<uint32_t>(wide);
  for (; i < bytes.size(); ++i) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(bytes[i]));
  return crc;
}
#endif

}  // namespace

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
#if defined(__x86_64__)
  if (CPU_FEATURE_ACTIVE(SSE4_2) != 0) return ~UpdateByInstruction(bytes, ~crc);
#endif
  return ~UpdateByTable(bytes, ~crc);
}

}  // namespace fusebox::saved_model
