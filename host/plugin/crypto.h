// SPDX-License-Identifier: Apache-2.0
// SHA-256 and Ed25519 of libcrypto (OpenSSL), which is loaded on first use: programs without sealed, pinned
// or signed plugins do not need it. Any thread. Error: libcrypto is missing.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox {

std::string Hexadecimal(std::span<const std::byte> bytes);
// In hexadecimal.
Result<std::string> Sha256(std::span<const std::byte> bytes);
// Returns whether `signature` (64 bytes) signs the message. `key`: the Base64 line of a PEM file with an
// Ed25519 public key.
Result<bool> VerifySignature(std::string_view key, std::string_view message, std::string_view signature);

}  // namespace fusebox
