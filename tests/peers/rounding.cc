// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/rounding.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "host/tflite/tflite.h"
#include "tests/testing/pipeline.h"
#include "tests/testing/stock.h"

namespace fusebox::testing {
namespace {

// Part of the type's range, so that means are not all near its middle.
template <class T>
Tensor Stored(Dice& dice, const Type& type) {
  const int64_t least = std::numeric_limits<T>::lowest(), most = std::numeric_limits<T>::max();
  const int64_t low = dice.Flip() ? least : dice.Int(least, most), high = dice.Int(low, most);
  const auto count = CountOf({type.shape.dims().begin(), type.shape.dims().end()});
  return {type, Buffer::Of<T>(dice.Values<T>(static_cast<size_t>(count), low, high))};
}

Tensor Stored(Dice& dice, const Type& type) {
  switch (type.dtype) {
    case DType::kI16: return Stored<int16_t>(dice, type);
    case DType::kU8: return Stored<uint8_t>(dice, type);
    default: return Stored<int8_t>(dice, type);
  }
}

// The zero point everywhere.
Tensor Filled(const Value& value) {
  const auto zero = value.quant->zero_points[0];
  const auto count =
      static_cast<size_t>(CountOf({value.type.shape.dims().begin(), value.type.shape.dims().end()}));
  if (value.type.dtype == DType::kI16)
    return {value.type, Buffer::Of<int16_t>(std::vector<int16_t>(count, 0))};
  return {value.type, Buffer::Of<uint8_t>(std::vector<uint8_t>(count, static_cast<uint8_t>(zero)))};
}

std::string WhereDifferent(const Tensor& ours, const Tensor& theirs) {
  if (!(ours.type.shape == theirs.type.shape)) return "shapes differ";
  const auto compare = [&]<class T>(T) -> std::string {
    const auto x = ours.data.As<T>(), y = theirs.data.As<T>();
    size_t count = 0, first = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] != y[i] && count++ == 0) first = i;
    if (count == 0) return {};
    return std::to_string(count) + " of " + std::to_string(x.size()) + " values differ, the first of them " +
           std::to_string(x[first]) + " where stock has " + std::to_string(y[first]);
  };
  switch (ours.type.dtype) {
    case DType::kI16: return compare(int16_t{});
    case DType::kU8: return compare(uint8_t{});
    default: return compare(int8_t{});
  }
}

}  // namespace

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

int64_t CountOf(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

std::string TextOf(const Dims& dims) {
  std::string text = "[";
  for (const int64_t d : dims) text += (text.size() > 1 ? "," : "") + std::to_string(d);
  return text + "]";
}

void ExpectStocksValues(const Family& family) {
  const auto registry = Plugins();
  ASSERT_TRUE(registry) << registry.error().message;
  int failures = 0;
  const int trials = std::getenv("FUSEBOX_LONG_TESTS") ? 5000 : 100;
  for (int trial = 0; trial < trials && failures < 5; ++trial) {
    Dice dice(static_cast<uint32_t>(trial + 1));
    std::string what;
    const auto module = family.build(dice, what);
    SCOPED_TRACE("trial " + std::to_string(trial) + ": " + what);
    const std::string path = TestDir() + "/op.tflite";
    ASSERT_TRUE(tflite::WriteFile(*module, path));
    auto stock = Stock::Open(path);
    ASSERT_TRUE(stock) << stock.error().message;
    const auto ours = Open(path, *registry);
    ASSERT_TRUE(ours) << ours.error().message;
    const Function& main = *module->functions[0];
    const Value& x = main.value(main.inputs[0]);
    const Tensor input = family.of_zeros ? Filled(x) : Stored(dice, x.type);
    const auto expected = (*stock)->Invoke({input});
    ASSERT_TRUE(expected) << expected.error().message;
    const auto got = Invoke(**ours, {input});
    ASSERT_TRUE(got) << got.error().message;
    const std::string where = WhereDifferent((*got)[0], (*expected)[0]);
    EXPECT_EQ(where, "");
    failures += !where.empty();
  }
}

}  // namespace fusebox::testing
