// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3" (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace fusebox::cpu {

// Blocks of four words for a key and a counter of 128 bits, which each block increments.
class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  Philox(uint64_t key, uint64_t high, uint64_t low = 0) : key_(key), high_(high), low_(low) {}

  Block Next() {
    Block x = {Low(low_), High(low_), Low(high_), High(high_)};
    uint32_t a = Low(key_);
    uint32_t b = High(key_);
    for (int round = 0; round < 10; ++round, a += 0x9E3779B9, b += 0xBB67AE85) {
      const uint64_t p = uint64_t{0xD2511F53} * x[0];
      const uint64_t q = uint64_t{0xCD9E8D57} * x[2];
      x = {High(q) ^ x[1] ^ a, Low(q), High(p) ^ x[3] ^ b, Low(p)};
    }
    Skip(1);
    return x;
  }
  void Skip(uint64_t blocks) {
    low_ += blocks;
    high_ += low_ < blocks ? 1 : 0;
  }
  uint64_t low() const { return low_; }

 private:
  static uint32_t Low(uint64_t x) { return static_cast<uint32_t>(x); }
  static uint32_t High(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  uint64_t key_, high_, low_;
};

}  // namespace fusebox::cpu
