// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/cache/digest.h"

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // selects the widest code of this machine at run time
#else
#include <xxhash.h>
#endif

namespace fusebox::cache {

Digest Hash(std::span<const std::byte> bytes, uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes.data(), bytes.size(), seed);
  return {hash.low64, hash.high64};
}

std::string Hex(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {digest.high, digest.low})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[half >> shift & 15];
  return text;
}

KeyBuilder& KeyBuilder::Append(const void* data, size_t size) {
  parts_.append(static_cast<const char*>(data), size);
  return *this;
}

KeyBuilder& KeyBuilder::Number(uint64_t value) { return Append(&value, sizeof value); }

KeyBuilder& KeyBuilder::Text(std::string_view text) {
  return Number(text.size()).Append(text.data(), text.size());
}

KeyBuilder& KeyBuilder::Buffer(const Digest& content, uint64_t size) {
  return Number(size).Append(&content, sizeof content);
}

Key KeyBuilder::Build(uint64_t fingerprint) const {
  return {Hash(std::as_bytes(std::span(parts_))), fingerprint};
}

}  // namespace fusebox::cache
