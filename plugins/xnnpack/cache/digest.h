// SPDX-License-Identifier: Apache-2.0
// XXH3-128 digests, with the widest vector code of this machine. Fast, but not collision resistant if the
// seed is known: content digests are seeded with the store's secret.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fusebox::cache {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
  bool zero() const { return low == 0 && high == 0; }
};

Digest Hash(std::span<const std::byte> bytes, uint64_t seed = 0);
// 32 hexadecimal digits.
std::string Hex(const Digest& digest);

struct DigestHash {
  size_t operator()(const Digest& d) const { return d.low; }
};

// Look-up key of packed bytes. `identity`: what was packed and how. `fingerprint`: the packing code (library
// build, canary). An entry with another fingerprint is never used; publishing the identity with a new one
// supersedes it. So layouts that coexist (two CPUs or two versions of a library that share a store) need
// different identities.
struct Key {
  Digest identity;
  uint64_t fingerprint = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// Builds an identity. Every part includes its length or width, so that different sequences of parts never
// have equal bytes.
class KeyBuilder {
 public:
  KeyBuilder() = default;
  explicit KeyBuilder(std::string_view family) { Text(family); }
  KeyBuilder& Number(uint64_t value);
  KeyBuilder& Real(float value) { return Number(std::bit_cast<uint32_t>(value)); }
  KeyBuilder& Text(std::string_view text);
  // A digest of a buffer and the buffer's size.
  KeyBuilder& Buffer(const Digest& content, uint64_t size);
  const std::string& parts() const { return parts_; }
  Key Build(uint64_t fingerprint) const;

 private:
  KeyBuilder& Append(const void* data, size_t size);
  std::string parts_;
};

}  // namespace fusebox::cache
