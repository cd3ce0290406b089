// SPDX-License-Identifier: Apache-2.0
// Sums of 32 bits to 8-bit results (ByteScales). Compiled once per target, by byte_code.cc.
#if defined(FUSEBOX_CPU_BYTE_SCALE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_CPU_BYTE_SCALE_INL_H_
#undef FUSEBOX_CPU_BYTE_SCALE_INL_H_
#else
#define FUSEBOX_CPU_BYTE_SCALE_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/cpu/quantized/byte_code.h"
#include "plugins/math/gemm/bytes-inl.h"
#include "plugins/math/simd/fixed_point-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace mm = math::HWY_NAMESPACE;

// The scale of a vector of channels.
class ChannelScale {
  using Sum = mm::ByteSum;
  static constexpr mm::ByteSumTag d{};

 public:
  HWY_INLINE ChannelScale() {}  // an implicit one is not compiled for the target
  HWY_INLINE void Load(const ByteScales& s, size_t channel) {
    const auto of = [&](const std::vector<int32_t>& by) HWY_ATTR {
      return s.per_channel() ? hn::LoadU(d, by.data() + channel) : hn::Set(d, by[0]);
    };
    any_left_ = s.any_left;
    left_ = any_left_ ? of(s.left) : hn::Zero(d);
    value_ = of(s.values);
    right_ = of(s.right);
    half_ = of(s.half);
    half_below_ = of(s.half_below);
    zero_ = hn::Set(d, s.range.zero);
    low_ = hn::Set(d, s.range.lowest);
    high_ = hn::Set(d, s.range.highest);
  }

  // Rounds magnitudes, which do not overflow as numbers without a sign.
  HWY_INLINE Sum operator()(Sum sum) const {
    constexpr hn::RebindToUnsigned<mm::ByteSumTag> du{};
    if (any_left_) sum = mm::ShiftedLeft(sum, left_);
    const Sum scaled = mm::HighProduct(sum, value_);
    const Sum raised = hn::Add(hn::Abs(scaled), hn::IfNegativeThenElse(scaled, half_below_, half_));
    const Sum size = hn::BitCast(d, hn::Shr(hn::BitCast(du, raised), hn::BitCast(du, right_)));
    const Sum result = hn::IfNegativeThenElse(scaled, hn::Sub(zero_, size), hn::Add(zero_, size));
    return hn::Min(hn::Max(result, low_), high_);
  }

 private:
  bool any_left_;
  Sum value_, left_, right_, half_, half_below_, zero_, low_, high_;
};

// `count` bytes of one vector of channels.
HWY_INLINE void StoreBytes(mm::ByteSum results, size_t count, uint8_t* out) {
  constexpr hn::RebindToUnsigned<mm::ByteSumTag> du{};
  constexpr hn::Rebind<uint8_t, mm::ByteSumTag> d8{};
  const auto bytes = hn::TruncateTo(d8, hn::BitCast(du, results));
  if (count >= mm::kByteLanes) hn::StoreU(bytes, d8, out);
  else hn::StoreN(bytes, d8, out, count);
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
