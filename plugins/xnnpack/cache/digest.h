// SPDX-License-Identifier: Apache-2.0
// XXH3-128 digests, with the widest vector code of this machine. Fast, and not collision resistant against
// somebody who knows the seed: what a store keys by content is seeded with the store's secret.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fusebox::cache {

struct Digest {
  uint64_t low = 0, high = 0;
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

// What packed bytes are looked up by. `identity` says what was packed and how it was asked for; `fingerprint`
// stands for the code that packs (library build, canary). Entries of one identity and another fingerprint are
// never used, and are superseded once the identity is published under a new one. What must live side by side
// (the layouts of two CPUs that share a store) therefore belongs into the identity.
struct Key {
  Digest identity;
  uint64_t fingerprint = 0;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// Gathers an identity. Every part is written with its length or width, so that two different sequences of
// parts never give the same bytes.
class KeyBuilder {
 public:
  KeyBuilder() = default;
  explicit KeyBuilder(std::string_view family) { Text(family); }
  KeyBuilder& Number(uint64_t value);
  KeyBuilder& Real(float value) { return Number(std::bit_cast<uint32_t>(value)); }
  KeyBuilder& Text(std::string_view text);
  // Digests go in with the length of what they stand for.
  KeyBuilder& Buffer(const Digest& content, uint64_t size);
  const std::string& parts() const { return parts_; }
  Key Build(uint64_t fingerprint) const;

 private:
  KeyBuilder& Append(const void* data, size_t size);
  std::string parts_;
};

}  // namespace fusebox::cache
