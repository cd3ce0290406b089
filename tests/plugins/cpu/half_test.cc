// SPDX-License-Identifier: Apache-2.0
// Halves as floats, also in threads that flush subnormal floats to zero, as TensorFlow Lite's do.
#include "plugins/cpu/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace fusebox::cpu {
namespace {

// Subnormal operands and results of floats are zero while it lives.
class FlushToZero {
 public:
  FlushToZero() : before_(Mode()) { SetMode(before_ | kFlush); }
  ~FlushToZero() { SetMode(before_); }
  FlushToZero(const FlushToZero&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint32_t kFlush = 0x8040;
  static uint32_t Mode() { return __builtin_ia32_stmxcsr(); }
  static void SetMode(uint32_t mode) { __builtin_ia32_ldmxcsr(mode); }
  uint32_t before_;
#else
  static constexpr uint64_t kFlush = uint64_t{1} << 24;
  static uint64_t Mode() {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void SetMode(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
  uint64_t before_;
#endif
};

double Expected(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31)
    magnitude =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

void ExpectAllHalves() {
  for (int half = 0; half < 65536; ++half) {
    const double expected = Expected(static_cast<uint16_t>(half));
    const float value = FloatFromHalf(static_cast<uint16_t>(half));
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << half;
    if (std::isnan(expected)) EXPECT_TRUE(std::isnan(value)) << half;
    else EXPECT_EQ(value, static_cast<float>(expected)) << half;
  }
}

TEST(Half, IsExactAsAFloat) { ExpectAllHalves(); }

TEST(Half, IsExactWhereSubnormalFloatsAreFlushed) {
  const FlushToZero mode;
  ExpectAllHalves();
}

}  // namespace
}  // namespace fusebox::cpu
