// SPDX-License-Identifier: Apache-2.0
// Quantization of f32 to int8 and products of int8 (range, quantize and dots of PanelCode, simd/panels.h).
// Compiled once per target.
#if defined(FUSEBOX_RNN_SIMD_BYTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_RNN_SIMD_BYTES_INL_H_
#undef FUSEBOX_RNN_SIMD_BYTES_INL_H_
#else
#define FUSEBOX_RNN_SIMD_BYTES_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/rnn/simd/panels.h"
#include "plugins/rnn/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Comparisons instead of Min and Max, so that NaN is skipped. The zeros beyond a partial vector have no
// effect, because the range includes 0.
void Range(const float* x, size_t n, float* low, float* high) {
  auto least = hn::Zero(fd), most = hn::Zero(fd);
  for (size_t i = 0; i < n; i += kFloatLanes) {
    const FloatVector v = LoadSome(x + i, n - i);
    least = hn::IfThenElse(hn::Lt(v, least), v, least);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  *low = hn::ReduceMin(fd, least);
  *high = hn::ReduceMax(fd, most);
}

// Rounds to nearest, half away from zero. |x| is small.
HWY_INLINE FloatVector RoundAway(FloatVector x) {
  const FloatVector whole = hn::Trunc(x), rest = hn::Abs(hn::Sub(x, whole));
  const FloatVector one = hn::CopySign(hn::Set(fd, 1.0f), x);
  return hn::IfThenElse(hn::Ge(rest, hn::Set(fd, 0.5f)), hn::Add(whole, one), whole);
}

void Quantize(const float* x, size_t n, float inverse, int32_t zero, int32_t least, int8_t* to) {
  const hn::RebindToSigned<FloatTag> d32;
  const hn::Rebind<int8_t, FloatTag> d8;
  const auto by = hn::Set(fd, inverse), middle = hn::Set(fd, static_cast<float>(zero));
  const auto low = hn::Set(fd, static_cast<float>(least - zero)),
             high = hn::Set(fd, static_cast<float>(127 - zero));
  for (size_t i = 0; i < n; i += kFloatLanes) {
    // The clamp is between product and sum, so that no compiler fuses them into one rounding. NaN becomes
    // the least value.
    FloatVector v = hn::Mul(LoadSome(x + i, n - i), by);
    v = hn::IfThenElse(hn::Gt(v, low), v, low);
    v = hn::IfThenElse(hn::Gt(v, high), high, v);
    const auto quantized = hn::DemoteTo(d8, hn::ConvertTo(d32, RoundAway(hn::Add(middle, v))));
    if (HWY_LIKELY(n - i >= kFloatLanes)) {
      hn::StoreU(quantized, d8, to + i);
    } else {
      hn::StoreN(quantized, d8, to + i, n - i);
    }
  }
}

using WideTag = hn::CappedTag<int16_t, 2 * kMaxLanes>;
constexpr WideTag wd{};
using SumTag = hn::RepartitionToWide<WideTag>;
constexpr SumTag sd{};
using Sum = hn::Vec<SumTag>;

// Adds the products of as many bytes as fill a vector when widened.
HWY_INLINE void AddBytes(const int8_t* row, const int8_t* x, Sum& even, Sum& odd) {
  const hn::Rebind<int8_t, WideTag> d8;
  even = hn::ReorderWidenMulAccumulate(sd, hn::PromoteTo(wd, hn::LoadU(d8, row)),
                                       hn::PromoteTo(wd, hn::LoadU(d8, x)), even, odd);
}

template <class Tag>
HWY_INLINE auto FoldToFour([[maybe_unused]] Tag tag, hn::Vec<Tag> v) {
  if constexpr (HWY_MAX_LANES_D(Tag) == 4) {
    return v;
  } else {
    const hn::Half<Tag> half;
    return FoldToFour(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// Four rows; their sums are reduced in vectors too. `columns` is a multiple of the lanes.
HWY_INLINE void FourDots(const int8_t* rows, size_t stride, size_t columns, const int8_t* x, int32_t* sums) {
  Sum even[4], odd[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) even[r] = odd[r] = hn::Zero(sd);
  for (size_t k = 0; k < columns; k += hn::Lanes(wd)) {
#pragma GCC unroll 4
    for (size_t r = 0; r < 4; ++r) AddBytes(rows + r * stride + k, x + k, even[r], odd[r]);
  }
  const hn::CappedTag<int32_t, 4> d4;
  const hn::RepartitionToWide<decltype(d4)> d2;
  const auto of = [&](int r) HWY_ATTR { return FoldToFour(sd, hn::Add(even[r], odd[r])); };
  const auto a = of(0), b = of(1), c = of(2), e = of(3);
  const auto ab = hn::BitCast(d2, hn::Add(hn::InterleaveLower(d4, a, b), hn::InterleaveUpper(d4, a, b)));
  const auto ce = hn::BitCast(d2, hn::Add(hn::InterleaveLower(d4, c, e), hn::InterleaveUpper(d4, c, e)));
  hn::StoreU(hn::Add(hn::BitCast(d4, hn::InterleaveLower(d2, ab, ce)),
                     hn::BitCast(d4, hn::InterleaveUpper(d2, ab, ce))),
             d4, sums);
}

void Dots(const int8_t* rows, size_t count, size_t columns, const int8_t* x, int32_t* sums) {
  const size_t lanes = hn::Lanes(wd), padded = RoundUp(columns, lanes), bytes = count * columns;
  size_t i = 0;
  // Whole vectors may read into the next row; there x is zero.
  for (; i + 4 <= count && (i + 3) * columns + padded <= bytes; i += 4)
    FourDots(rows + i * columns, columns, padded, x, sums + i);
  for (; i < count; ++i) {
    const int8_t* const row = rows + i * columns;
    Sum even = hn::Zero(sd), odd = even;
    size_t k = 0;
    for (; k + lanes <= columns; k += lanes) AddBytes(row + k, x + k, even, odd);
    int32_t rest = 0;
    for (; k < columns; ++k) rest += int32_t{row[k]} * int32_t{x[k]};
    sums[i] = rest + hn::GetLane(hn::SumOfLanes(sd, hn::Add(even, odd)));
  }
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
