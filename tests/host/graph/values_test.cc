// SPDX-License-Identifier: Apache-2.0
#include "host/graph/values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "host/graph/npy.h"

namespace fusebox {
namespace {

using ::testing::ElementsAre;

constexpr DType kNumeric[] = {DType::kF32,  DType::kF64,       DType::kF16,       DType::kBF16, DType::kI8,
                              DType::kI16,  DType::kI32,       DType::kI64,       DType::kU8,   DType::kU16,
                              DType::kU32,  DType::kU64,       DType::kI4,        DType::kU4,   DType::kI2,
                              DType::kBool, DType::kComplex64, DType::kComplex128};

template <class T>
Tensor Of(DType dtype, const std::vector<T>& values) {
  return {{dtype, {static_cast<int64_t>(values.size())}}, Buffer::Of<T>(values)};
}

Tensor Seeded(const Type& type, uint64_t seed = 1) {
  return {type,
          Buffer::Make(*ByteSize(type), [&](std::span<std::byte> to) { FillSeeded(type, seed, 0, to); })};
}

TEST(Values, OfEveryTypeAreReadAsTheyWereFilled) {
  for (const DType dtype : kNumeric) {
    const Type type{dtype, {7}};
    ASSERT_TRUE(IsNumeric(dtype)) << Name(dtype);
    const Tensor tensor{type, Buffer::Make(*ByteSize(type), [&](std::span<std::byte> to) {
                          FillElements(
                              type, to, [](size_t i) { return 0.25 * static_cast<double>(i) - 1; },
                              [](size_t i) { return static_cast<int64_t>(i % 2); });
                        })};
    ASSERT_EQ(ElementCount(tensor), 7u);
    for (size_t i = 0; i < 7; ++i) {
      const ElementNumber is = ElementAt(tensor, i);
      const long double real = 0.25L * static_cast<long double>(i) - 1;
      if (IsComplex(dtype)) {
        EXPECT_EQ(is, ElementNumber(2 * real + 1, 2 * real + 1.25L));
        continue;
      }
      EXPECT_EQ(is.real(), IsFloat(dtype) ? real : static_cast<long double>(i % 2)) << Name(dtype);
      EXPECT_EQ(ToDoubles(tensor)[i], static_cast<double>(is.real()));
    }
  }
  for (const DType dtype : {DType::kString, DType::kResource, DType::kVariant, DType::kF8E5M2, DType::kNone})
    EXPECT_FALSE(IsNumeric(dtype)) << Name(dtype);
}

TEST(Values, PackedOnesHaveTheLowBitsFirst) {
  const auto bytes = Buffer::Of<uint8_t>(std::vector<uint8_t>{0x8F, 0x21});
  EXPECT_THAT(ToDoubles({{DType::kI4, {4}}, bytes}), ElementsAre(-1, -8, 1, 2));
  EXPECT_THAT(ToDoubles({{DType::kU4, {3}}, bytes}), ElementsAre(15, 8, 1));
  EXPECT_THAT(ToDoubles({{DType::kI2, {5}}, bytes}), ElementsAre(-1, -1, 0, -2, 1));
}

TEST(Values, OfIntegersAreExact) {
  const auto most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(ElementAt(Of<uint64_t>(DType::kU64, {most}), 0).real(), static_cast<long double>(most));
  const auto least = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(ElementAt(Of<int64_t>(DType::kI64, {least + 1}), 0).real(), static_cast<long double>(least) + 1);
}

TEST(Values, AreReadInPieces) {
  std::vector<double> two(2);
  ReadDoubles(Of<int16_t>(DType::kI16, {1, -2, 3, 4}), 1, two);
  EXPECT_THAT(two, ElementsAre(-2, 3));
}

TEST(Values, PositionsAreCoordinates) {
  EXPECT_EQ(Coordinates(Shape::Scalar(), 0), "[]");
  EXPECT_EQ(Coordinates({2, 3, 4}, 17), "[1,1,1]");
}

// The formula of values.h; `fusebox run --seed` prints these numbers.
TEST(Seeded, NumbersAreTheDocumentedOnes) {
  uint64_t state = (3 << 20) + 0;
  const auto next = [&] {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  const uint64_t first = next();
  const uint64_t second = next();
  const auto unit = [](uint64_t r, int bits) {
    return std::ldexp(static_cast<double>(r >> (64 - bits)), 1 - bits) - 1;
  };
  const auto numbers = [&](DType dtype) { return ToDoubles(Seeded({dtype, {2}}, 3)); };
  EXPECT_THAT(numbers(DType::kF32), ElementsAre(unit(first, 24), unit(second, 24)));
  EXPECT_THAT(numbers(DType::kF64), ElementsAre(unit(first, 53), unit(second, 53)));
  EXPECT_THAT(numbers(DType::kF16), ElementsAre(unit(first, 11), unit(second, 11)));
  EXPECT_THAT(numbers(DType::kBF16), ElementsAre(unit(first, 8), unit(second, 8)));
  EXPECT_THAT(numbers(DType::kU8), ElementsAre(first >> 56, second >> 56));
  EXPECT_THAT(numbers(DType::kU16), ElementsAre(first >> 48, second >> 48));
  EXPECT_THAT(numbers(DType::kI64), ElementsAre(first >> 62, second >> 62));
  EXPECT_THAT(numbers(DType::kBool), ElementsAre(1, 0));
  EXPECT_THAT(numbers(DType::kU4), ElementsAre(first >> 56 & 15, first >> 60));
  const Tensor complex = Seeded({DType::kComplex64, {1}}, 3);
  EXPECT_EQ(ElementAt(complex, 0), ElementNumber(unit(first, 24), unit(second, 24)));
}

TEST(Seeded, ValuesNeedAKnownRankAndNumbers) {
  EXPECT_EQ(SeededValue({DType::kF32, {-1, 3}}, 1, 0)->type.shape, Shape({1, 3}));
  EXPECT_FALSE(SeededValue({DType::kF32, Shape()}, 1, 0));
  EXPECT_FALSE(SeededValue({DType::kVariant, {1}}, 1, 0));
  EXPECT_FALSE(SeededValue({DType::kF32, {1 << 30, 1 << 30, 1 << 30}}, 1, 0));
  const auto strings = UnpackStrings(SeededValue({DType::kString, {3}}, 1, 0)->data);
  ASSERT_TRUE(strings);
  for (const std::string& text : *strings) EXPECT_THAT(text, ::testing::MatchesRegex("s[0-3]"));
}

Difference Compared(const Tensor& a, const Tensor& b, Tolerance tolerance = {}) {
  const auto difference = Compare(a, b, tolerance);
  EXPECT_TRUE(difference);
  return difference.value_or(Difference());
}

TEST(Compare, NamesTheLargestExcess) {
  const Tensor a = Of<float>(DType::kF32, {1, 2, 4});
  const Tensor b = Of<float>(DType::kF32, {1, 2.5F, 4.25F});
  const Difference d = Compared(a, b, {.atol = 0.1, .rtol = 0});
  EXPECT_FALSE(d.within);
  EXPECT_EQ(d.where, "[1]: 2 and 2.5");
  EXPECT_EQ(d.absolute, 0.5);
  EXPECT_EQ(d.atol, 0.5);
  EXPECT_TRUE(Compared(a, b, {.atol = 0.5, .rtol = 0}).within);
}

TEST(Compare, NansAndEqualInfinitiesAreEqual) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  EXPECT_TRUE(Compared(Of<float>(DType::kF32, {nan, kInfinity, 0.0F}),
                       Of<float>(DType::kF32, {-nan, kInfinity, -0.0F}), {.atol = 0, .rtol = 0})
                  .within);
  for (const float other : {1.0F, -kInfinity, nan}) {
    const Difference d =
        Compared(Of<float>(DType::kF32, {kInfinity}), Of<float>(DType::kF32, {other}), {.atol = 1e300});
    EXPECT_FALSE(d.within) << other;
    EXPECT_TRUE(std::isinf(d.absolute));
  }
}

TEST(Compare, TypesAndStringsMustBeEqual) {
  EXPECT_FALSE(Compared(Of<float>(DType::kF32, {1}), Of<int32_t>(DType::kI32, {1})).within);
  EXPECT_TRUE(Compared(Of<float>(DType::kF32, {1}), Of<double>(DType::kF64, {1})).within);
  const auto strings = [](const std::vector<std::string>& texts) {
    return Tensor{{DType::kString, {static_cast<int64_t>(texts.size())}}, PackStrings(texts)};
  };
  EXPECT_TRUE(Compared(strings({"a", "b"}), strings({"a", "b"})).within);
  EXPECT_EQ(Compared(strings({"a", "b"}), strings({"a", "c"})).where, "[1]: \"b\" and \"c\"");
}

}  // namespace
}  // namespace fusebox
