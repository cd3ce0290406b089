// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) and the masked form that TensorFlow and leveldb store. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fusebox::saved_model {

// Extends the checksum `crc` with bytes: Crc32c(b, Crc32c(a)) is the checksum of a followed by b.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The stored form. Checksums are masked because the CRC of bytes that contain their own CRC is constant.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace fusebox::saved_model
