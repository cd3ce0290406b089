// SPDX-License-Identifier: Apache-2.0
// Fingerprint64 of FarmHash, by which TensorFlow puts strings into hash buckets.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace fusebox::common {
namespace farm {

constexpr uint64_t kA = 0xc3a5c85c97cb3127;
constexpr uint64_t kB = 0xb492b66fbe98f273;
constexpr uint64_t kC = 0x9ae16a3b2f90404f;

inline uint64_t Word(const char* at) {
  uint64_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline uint64_t HalfWord(const char* at) {
  uint32_t value = 0;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

inline uint64_t Rotate(uint64_t value, int bits) { return std::rotr(value, bits); }
inline uint64_t Fold(uint64_t value) { return value ^ value >> 47; }

// Combines two words into one.
inline uint64_t Join(uint64_t a, uint64_t b, uint64_t factor) {
  const uint64_t first = Fold((a ^ b) * factor);
  return Fold((b ^ first) * factor) * factor;
}

inline uint64_t FactorOf(size_t size) { return kC + 2 * size; }

inline uint64_t UpTo16(const char* s, size_t size) {
  if (size >= 8) {
    const uint64_t factor = FactorOf(size);
    const uint64_t a = Word(s) + kC;
    const uint64_t b = Word(s + size - 8);
    return Join(Rotate(b, 37) * factor + a, (Rotate(a, 25) + b) * factor, factor);
  }
  if (size >= 4) return Join(size + (HalfWord(s) << 3), HalfWord(s + size - 4), FactorOf(size));
  if (size == 0) return kC;
  const auto byte = [&](size_t i) { return uint64_t{static_cast<uint8_t>(s[i])}; };
  const uint64_t y = byte(0) + (byte(size / 2) << 8);
  const uint64_t z = size + (byte(size - 1) << 2);
  return Fold(y * kC ^ z * kA) * kC;
}

inline uint64_t UpTo32(const char* s, size_t size) {
  const uint64_t factor = FactorOf(size);
  const uint64_t a = Word(s) * kB;
  const uint64_t b = Word(s + 8);
  const uint64_t c = Word(s + size - 8) * factor;
  const uint64_t d = Word(s + size - 16) * kC;
  return Join(Rotate(a + b, 43) + Rotate(c, 30) + d, a + Rotate(b + kC, 18) + c, factor);
}

inline uint64_t UpTo64(const char* s, size_t size) {
  const uint64_t factor = FactorOf(size);
  const uint64_t a = Word(s) * kC;
  const uint64_t b = Word(s + 8);
  const uint64_t c = Word(s + size - 8) * factor;
  const uint64_t d = Word(s + size - 16) * kC;
  const uint64_t y = Rotate(a + b, 43) + Rotate(c, 30) + d;
  const uint64_t z = Join(y, a + Rotate(b + kC, 18) + c, factor);
  const uint64_t e = Word(s + 16) * factor;
  const uint64_t f = Word(s + 24);
  const uint64_t g = (y + Word(s + size - 32)) * factor;
  const uint64_t h = (z + Word(s + size - 24)) * factor;
  return Join(Rotate(e + f, 43) + Rotate(g, 30) + h, e + Rotate(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first = 0;
  uint64_t second = 0;
};

// Combines 32 bytes into two words.
inline Pair Mix(const char* s, uint64_t a, uint64_t b) {
  a += Word(s);
  b = Rotate(b + a + Word(s + 24), 21);
  const uint64_t before = a;
  a += Word(s + 8) + Word(s + 16);
  b += Rotate(a, 44);
  return {a + Word(s + 24), b + before};
}

// State between blocks of 64 bytes.
struct State {
  uint64_t x, y, z;
  Pair v, w;

  // `nine` is 1 except for the last block.
  void Take(const char* s, uint64_t factor, uint64_t nine) {
    x = Rotate(x + y + v.first + Word(s + 8), 37) * factor;
    y = Rotate(y + v.second + Word(s + 48), 42) * factor;
    x ^= w.second * nine;
    y += v.first * nine + Word(s + 40);
    z = Rotate(z + w.first, 33) * factor;
    v = Mix(s, v.second * factor, x + w.first);
    w = Mix(s + 32, z + w.second, y + Word(s + 16));
    std::swap(z, x);
  }
};

inline uint64_t Longer(const char* s, size_t size) {
  constexpr uint64_t kSeed = 81;
  const uint64_t y = kSeed * kB + 113;
  State state{kSeed * kC + Word(s), y, Fold(y * kC + 113) * kC, {}, {}};
  const size_t rest = (size - 1) % 64;
  const size_t blocks = (size - 1) / 64;
  for (size_t i = 0; i < blocks; ++i) state.Take(s + 64 * i, kB, 1);
  const uint64_t factor = kB + ((state.z & 0xFF) << 1);
  state.w.first += rest;
  state.v.first += state.w.first;
  state.w.first += state.v.first;
  state.Take(s + size - 64, factor, 9);
  return Join(Join(state.v.first, state.w.first, factor) + Fold(state.y) * kA + state.z,
              Join(state.v.second, state.w.second, factor) + state.x, factor);
}

}  // namespace farm

inline uint64_t Fingerprint(std::string_view text) {
  if (text.size() <= 16) return farm::UpTo16(text.data(), text.size());
  if (text.size() <= 32) return farm::UpTo32(text.data(), text.size());
  return text.size() <= 64 ? farm::UpTo64(text.data(), text.size()) : farm::Longer(text.data(), text.size());
}

}  // namespace fusebox::common
