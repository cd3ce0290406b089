// SPDX-License-Identifier: Apache-2.0
#include "plugins/math/simd/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/math/simd/quantize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The zeros beyond a partial vector have no effect, because the range includes 0.
bool Range(const float* x, size_t n, float* low, float* high) {
  FloatVector least = hn::Zero(fd);
  FloatVector most = hn::Zero(fd);
  FloatVector zeros = hn::Zero(fd);  // NaN once a value is not finite
  const auto extend = [&](FloatVector v) HWY_ATTR {
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
    zeros = hn::MulAdd(v, hn::Zero(fd), zeros);
  };
  size_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) extend(hn::LoadU(fd, x + i));
  if (i < n) extend(hn::LoadN(fd, x + i, n - i));
  *low = hn::ReduceMin(fd, least);
  *high = hn::ReduceMax(fd, most);
  return hn::ReduceSum(fd, zeros) == 0.0f;
}

// Rounds to nearest, half away from zero, for |x| below 2^22: what is added is the number below a half, so
// that numbers just below a half stay below one, and halves become the next number by rounding of the sum.
HWY_INLINE hn::Vec<hn::RebindToSigned<FloatTag>> RoundAway(FloatVector x) {
  const FloatVector nearly_half = hn::CopySign(hn::Set(fd, 0x1.fffffep-2f), x);
  return hn::ConvertTo(hn::RebindToSigned<FloatTag>(), hn::Add(x, nearly_half));
}

void Quantize(const float* x, size_t n, float inverse, int32_t zero, int32_t least, int8_t* to) {
  const hn::Rebind<int8_t, FloatTag> d8;
  const FloatVector by = hn::Set(fd, inverse);
  const FloatVector middle = hn::Set(fd, static_cast<float>(zero));
  const FloatVector low = hn::Set(fd, static_cast<float>(least - zero));
  const FloatVector high = hn::Set(fd, static_cast<float>(127 - zero));
  const auto quantized = [&](FloatVector from) HWY_ATTR {
    // The clamp is between product and sum, so that no compiler fuses them into one rounding. NaN becomes
    // the least value.
    FloatVector v = hn::Mul(from, by);
    v = hn::IfThenElse(hn::Gt(v, low), v, low);
    v = hn::IfThenElse(hn::Gt(v, high), high, v);
    return hn::DemoteTo(d8, RoundAway(hn::Add(middle, v)));
  };
  size_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) hn::StoreU(quantized(hn::LoadU(fd, x + i)), d8, to + i);
  if (i < n) hn::StoreN(quantized(hn::LoadN(fd, x + i, n - i)), d8, to + i, n - i);
}

const QuantizeCode& CodeOfQuantize() {
  static constexpr QuantizeCode code{Range, Quantize};
  return code;
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::math {
namespace {

// The zero point comes from the end of the range that has the smaller rounding error.
int32_t ZeroPoint(double low, double high, double step) {
  const double low_error = 128 + std::abs(low / step);
  const double high_error = 127 + std::abs(high / step);
  const double zero = low_error < high_error ? -128 - low / step : 127 - high / step;
  return static_cast<int32_t>(std::round(std::clamp(zero, -128.0, 127.0)));
}

}  // namespace

std::vector<const QuantizeCode*> QuantizeCodes() { return FUSEBOX_SIMD_TABLES(QuantizeCode, CodeOfQuantize); }

RowScale QuantizeRow(const float* x, size_t n, bool asymmetric, int8_t* values) {
  const QuantizeCode& code = QuantizeChoice::Best();
  float low = 0;
  float high = 0;
  const bool finite = code.range(x, n, &low, &high);
  if (!finite || low == high) {
    std::fill_n(values, n, int8_t{0});
    return {finite ? 1 : std::numeric_limits<float>::quiet_NaN(), 0};
  }
  if (!asymmetric) {
    const float largest = std::max(-low, high);
    code.quantize(x, n, 127 / largest, 0, -127, values);
    return {largest / 127, 0};
  }
  const double step = (double{high} - double{low}) / 255;
  const RowScale to{static_cast<float>(step), ZeroPoint(low, high, step)};
  code.quantize(x, n, 1 / to.scale, to.zero, -128, values);
  return to;
}

}  // namespace fusebox::math
#endif
