// SPDX-License-Identifier: Apache-2.0
#include "plugins/signal/fixed_math.h"

#include <array>
#include <cmath>

namespace fusebox::signal {
namespace {

constexpr int kScaleBits = 16;   // fractional bits
constexpr int kSegmentBits = 7;  // segments of the table: 2^7

// Returns log2(1 + x) - x at the ends of the segments, with 16 fractional bits.
const std::array<int32_t, (1 << kSegmentBits) + 1>& Bulge() {
  static const auto table = [] {
    std::array<int32_t, (1 << kSegmentBits) + 1> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = static_cast<double>(i) / (1 << kSegmentBits);
      values[i] = static_cast<int32_t>(std::lround((std::log2(1 + x) - x) * (1 << kScaleBits)));
    }
    return values;
  }();
  return table;
}

// log2 of the fraction of x, with 16 fractional bits.
uint32_t LogOfFraction(uint32_t x, int exponent) {
  auto fraction = static_cast<int32_t>(x - (uint32_t{1} << exponent));
  if (exponent < kScaleBits) fraction <<= kScaleBits - exponent;
  else fraction >>= exponent - kScaleBits;
  const int32_t segment = fraction >> (kScaleBits - kSegmentBits);
  const int32_t first = Bulge()[static_cast<size_t>(segment)];
  const int32_t second = Bulge()[static_cast<size_t>(segment) + 1];
  const int32_t inside = fraction - (segment << (kScaleBits - kSegmentBits));
  return static_cast<uint32_t>(fraction + first + (((second - first) * inside) >> kScaleBits));
}

}  // namespace

// tflite-micro computes 32 bits separately, where a root of 2^16 saturates.
uint32_t SquareRoot(uint64_t x) {
  if (x == 0) return 0;
  const uint64_t most = x >> 32 == 0 ? 0xFFFF : 0xFFFFFFFF;
  uint64_t root = 0;
  uint64_t rest = x;
  for (uint64_t bit = uint64_t{1} << ((BitsOf(x) - 1) & ~1); bit != 0; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return static_cast<uint32_t>(rest > root && root != most ? root + 1 : root);
}

uint32_t ScaledLog(uint32_t x, uint32_t scale) {
  constexpr uint64_t kLn2 = 45426;
  constexpr uint64_t kHalf = 1 << (kScaleBits - 1);
  const int exponent = BitsOf(x) - 1;
  const uint32_t log2 = (static_cast<uint32_t>(exponent) << kScaleBits) + LogOfFraction(x, exponent);
  const auto log = static_cast<uint32_t>((kLn2 * log2 + kHalf) >> kScaleBits);
  return (scale * log + static_cast<uint32_t>(kHalf)) >> kScaleBits;
}

int16_t Gain(uint32_t x, const int16_t* table) {
  if (x <= 2) return table[x];
  const int bits = BitsOf(x);
  const int16_t* const row = table + 4 * bits - 6;
  const auto fraction = static_cast<int64_t>((bits < 11 ? x << (11 - bits) : x >> (bits - 11)) & 0x3FF);
  int64_t sum = ((row[2] * fraction) >> 5) + static_cast<int64_t>(row[1]) * 32;
  sum = static_cast<int32_t>(sum * fraction);
  return static_cast<int16_t>((static_cast<int32_t>(sum + (1 << 14)) >> 15) + row[0]);
}

uint32_t Shrink(uint32_t x) {
  constexpr int kIn = 12;
  constexpr int kOut = 6;
  if (x < (2u << kIn)) return (x * x) >> (2 + 2 * kIn - kOut);
  return (x >> (kIn - kOut)) - (1u << kOut);
}

}  // namespace fusebox::signal
