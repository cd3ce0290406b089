// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) and the masked form in which TensorFlow and leveldb
// store it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fusebox::saved_model {

// The checksum of what `crc` stands for followed by bytes; Crc32c(b, Crc32c(a))
// is that of a and b joined.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// A stored checksum is masked, since the checksum of bytes that hold their own
// checksum is a constant.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace fusebox::saved_model
