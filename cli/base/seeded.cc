// SPDX-License-Identifier: Apache-2.0
#include "cli/base/seeded.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "host/graph/npy.h"

namespace fusebox::cli {
namespace {

class SplitMix {
 public:
  SplitMix(uint64_t seed, uint64_t index) : state_((seed << 20) + index) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [-1, 1), exact in a type whose significand has `bits` bits.
  double Unit(int bits) { return std::ldexp(static_cast<double>(Next() >> (64 - bits)), 1 - bits) - 1; }

 private:
  uint64_t state_;
};

// The f16 bits of a number in [-1, 1) that f16 can represent, from SplitMix::Unit(11).
uint16_t HalfBits(double value) {
  const uint16_t sign = value < 0 ? 0x8000 : 0;
  if (value == 0) return 0;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto mantissa = static_cast<uint16_t>(std::ldexp(fraction, 11)) & 1023;
  return static_cast<uint16_t>(sign | (exponent + 14) << 10 | mantissa);
}

using Fill = std::function<void(std::span<std::byte>, SplitMix&)>;

template <class T, class F>
Fill Each(F make) {
  return [make](std::span<std::byte> bytes, SplitMix& random) {
    for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      const T value = make(random, i);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  };
}

template <class T>
Fill SmallIndex() {
  return Each<T>([](SplitMix& random, size_t) { return static_cast<T>(random.Next() >> 62); });
}

// Returns null for an unsupported type.
Fill FillOf(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kComplex64: return Each<float>([](SplitMix& random, size_t) { return random.Unit(24); });
    case DType::kF64:
    case DType::kComplex128: return Each<double>([](SplitMix& random, size_t) { return random.Unit(53); });
    case DType::kF16:
      return Each<uint16_t>([](SplitMix& random, size_t) { return HalfBits(random.Unit(11)); });
    case DType::kBF16:
      return Each<uint16_t>([](SplitMix& random, size_t) {
        return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(random.Unit(8))) >> 16);
      });
    case DType::kI8:
    case DType::kU8:
    case DType::kI4:
    case DType::kU4:
    case DType::kI2: return Each<uint8_t>([](SplitMix& random, size_t) { return random.Next() >> 56; });
    case DType::kI16:
    case DType::kU16: return Each<uint16_t>([](SplitMix& random, size_t) { return random.Next() >> 48; });
    case DType::kI32:
    case DType::kU32: return SmallIndex<uint32_t>();
    case DType::kI64:
    case DType::kU64: return SmallIndex<uint64_t>();
    case DType::kBool: return Each<uint8_t>([](SplitMix&, size_t i) { return i % 2 == 0; });
    default: return nullptr;
  }
}

}  // namespace

Result<Tensor> SeededValue(const Type& declared, uint64_t seed, uint64_t index) {
  Type type = declared;
  if (!type.shape.ranked())
    return Unsupported("cannot generate a value of unknown rank; use `fusebox run --input`");
  for (int64_t& dim : type.shape.dims()) dim = dim < 0 ? 1 : dim;
  if (type.dtype == DType::kString) {
    SplitMix random(seed, index);
    const auto count = type.shape.element_count();
    if (!count || *count > (1 << 24)) return Unsupported(ToString(type) + " is too large");
    std::vector<std::string> strings(static_cast<size_t>(*count));
    for (std::string& text : strings) text = "s" + std::to_string(random.Next() >> 62);
    return Tensor{type, PackStrings(strings)};
  }
  if (!FillOf(type.dtype))
    return Unsupported("cannot generate values of type " + ToString(type) + "; use `fusebox run --input`");
  if (!ByteSize(type)) return Unsupported(ToString(type) + " is too large");
  return Tensor{type, {}};
}

void FillSeeded(const Type& type, uint64_t seed, uint64_t index, std::span<std::byte> memory) {
  SplitMix random(seed, index);
  FillOf(type.dtype)(memory, random);
}

}  // namespace fusebox::cli
