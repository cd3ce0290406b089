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
  static constexpr hn::RepartitionToWide<mm::ByteSumTag> dw{};
  static constexpr hn::RebindToUnsigned<decltype(dw)> bits{};
  using Wide = hn::Vec<decltype(dw)>;
  // Other CPUs have no arithmetic shifts of 64 bits by numbers in vectors.
  static constexpr bool kHasWideShifts = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

 public:
  HWY_INLINE ChannelScale() {}  // an implicit one is not compiled for the target
  HWY_INLINE void Load(const ByteScales& s, size_t channel) {
    const auto of = [&](const std::vector<int32_t>& by) HWY_ATTR {
      return s.per_channel() ? hn::LoadU(d, by.data() + channel) : hn::Set(d, by[0]);
    };
    value_ = of(s.values);
    right_ = of(s.right);
    low_ = hn::Set(d, s.range.lowest);
    high_ = hn::Set(d, s.range.highest);
    half_up_ = s.range.round_half_up;
    any_left_ = s.any_left;
    wide_ = kHasWideShifts && s.in_64_bits;
    if (wide_) return LoadWide(s.range);
    left_ = any_left_ ? of(s.left) : hn::Zero(d);
    half_ = of(s.half);
    half_below_ = of(s.half_below);
    zero_ = hn::Set(d, s.range.zero);
  }

  HWY_INLINE Sum operator()(Sum sum) const {
    return hn::Min(hn::Max(wide_ ? ScaledWide(sum) : Scaled(sum), low_), high_);
  }

 private:
  // The lanes of odd numbers, in place of those before them.
  static HWY_INLINE Sum Odd(Sum x) { return hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(bits, x))); }

  // floor((floor((p + 2^30) / 2^31) + 2^(r - 1)) / 2^r) = floor((p + 2^30 + 2^(30 + r)) / 2^(31 + r)), for a
  // product p of a sum and a value, and a shift r to the right. The zero point adds zero * 2^(31 + r).
  HWY_INLINE void LoadWide(const ByteRange& range) {
    odd_value_ = Odd(value_);
    const Sum shift = hn::Add(right_, hn::Set(d, 31));
    shift_[0] = hn::And(hn::BitCast(dw, shift), hn::Set(dw, UINT32_MAX));
    shift_[1] = hn::BitCast(dw, Odd(shift));
    const Wide twice = hn::Set(dw, 2 * int64_t{range.zero} + 1);
    for (int i = 0; i < 2; ++i)
      addend_[i] = hn::Add(hn::Shl(twice, hn::Sub(shift_[i], hn::Set(dw, 1))), hn::Set(dw, int64_t{1} << 30));
  }

  // If halves are rounded away from zero, the first quotient of a negative sum is one less.
  HWY_INLINE Sum ScaledWide(Sum sum) const {
    const auto shifted = [&](Sum x, Sum by, int i) HWY_ATTR {
      Wide product = hn::MulEven(x, by);
      if (!half_up_)
        product =
            hn::MaskedSubOr(product, hn::Lt(product, hn::Zero(dw)), product, hn::Set(dw, int64_t{1} << 31));
      return hn::Shr(hn::Add(product, addend_[i]), shift_[i]);
    };
    const Wide odd = hn::ShiftLeft<32>(shifted(Odd(sum), odd_value_, 1));
    return hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, shifted(sum, value_, 0)));
  }

  // Rounds magnitudes, which do not overflow as numbers without a sign.
  HWY_INLINE Sum Scaled(Sum sum) const {
    constexpr hn::RebindToUnsigned<mm::ByteSumTag> du{};
    if (any_left_) sum = mm::ShiftedLeft(sum, left_);
    const Sum scaled = mm::HighProduct(sum, value_);
    const Sum raised = hn::Add(hn::Abs(scaled), hn::IfNegativeThenElse(scaled, half_below_, half_));
    const Sum size = hn::BitCast(d, hn::Shr(hn::BitCast(du, raised), hn::BitCast(du, right_)));
    return hn::IfNegativeThenElse(scaled, hn::Sub(zero_, size), hn::Add(zero_, size));
  }

  bool wide_, half_up_, any_left_;
  Sum value_, right_, low_, high_;
  Sum left_, half_, half_below_, zero_;
  Sum odd_value_;
  Wide addend_[2], shift_[2];  // of even and odd lanes
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
