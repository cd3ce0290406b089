// SPDX-License-Identifier: Apache-2.0
// SipHash-2-4 (Aumasson and Bernstein, 2012), by which TensorFlow puts strings into buckets under a key.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace fusebox::common {

class SipHash {
 public:
  SipHash(uint64_t key0, uint64_t key1)
      : state_{key0 ^ 0x736f6d6570736575, key1 ^ 0x646f72616e646f6d, key0 ^ 0x6c7967656e657261,
               key1 ^ 0x7465646279746573} {}

  uint64_t operator()(std::string_view text) const {
    State v = state_;
    const uint64_t size = text.size();
    for (; text.size() >= 8; text.remove_prefix(8)) Add(v, Word(text.substr(0, 8)));
    Add(v, Word(text) | size << 56);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; ++i) Round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
  }

 private:
  using State = std::array<uint64_t, 4>;

  // Up to eight bytes, little-endian.
  static uint64_t Word(std::string_view bytes) {
    uint64_t word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }
  static void Add(State& v, uint64_t word) {
    v[3] ^= word;
    Round(v);
    Round(v);
    v[0] ^= word;
  }
  static void Round(State& v) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = std::rotl(v[1], 13) ^ v[0];
    v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] = std::rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = std::rotl(v[1], 17) ^ v[2];
    v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] = std::rotl(v[2], 32);
  }

  State state_;
};

}  // namespace fusebox::common
