// SPDX-License-Identifier: Apache-2.0
// The depthwise convolution of bytes (ByteTaps). Compiled once per target, by byte_code.cc.
//
// Four bytes of each channel, those under adjacent taps of a line, are the row of one dot product. Adjacent
// pixels look at nearly the same bytes: they share rows, with weights that are moved by whole bytes.
#if defined(FUSEBOX_CPU_BYTE_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_CPU_BYTE_TAPS_INL_H_
#undef FUSEBOX_CPU_BYTE_TAPS_INL_H_
#else
#define FUSEBOX_CPU_BYTE_TAPS_INL_H_
#endif

#include <hwy/highway.h>

#include <array>

#include "plugins/cpu/quantized/byte_scale-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace mm = math::HWY_NAMESPACE;

// The bytes under four taps in every lane, `at` and three more steps from it.
struct FourSteps {
  size_t second, third, fourth;
};
template <bool kWhole>
HWY_INLINE mm::ByteSum FourTaps(const uint8_t* at, const FourSteps& steps, size_t left) {
  constexpr mm::ByteSumTag d{};
  constexpr hn::Rebind<uint8_t, mm::ByteSumTag> d8{};
  const auto tap = [&](size_t step) HWY_ATTR {
    if constexpr (kWhole) return hn::LoadU(d8, at + step);
    else return hn::LoadN(d8, at + step, left);
  };
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
  constexpr hn::Twice<decltype(d8)> two{};
  constexpr hn::Repartition<uint8_t, mm::ByteSumTag> all{};
  alignas(64) static constexpr auto kOrder = [] {
    std::array<uint8_t, 64> order{};
    for (size_t i = 0; i < 64; ++i) order[i] = static_cast<uint8_t>(i % 4 / 2 * 64 + i % 2 * 16 + i / 4);
    return order;
  }();
  const auto pair = [&](auto low, auto high)
                        HWY_ATTR { return hn::ZeroExtendVector(all, hn::Combine(two, high, low)); };
  return hn::BitCast(d, hn::TwoTablesLookupLanes(all, pair(tap(0), tap(steps.second)),
                                                 pair(tap(steps.third), tap(steps.fourth)),
                                                 hn::SetTableIndices(all, kOrder.data())));
#else
  constexpr hn::RebindToUnsigned<mm::ByteSumTag> du{};
  const auto wide = [&](size_t step) HWY_ATTR { return hn::PromoteTo(du, tap(step)); };
  const auto low = hn::Or(wide(0), hn::ShiftLeft<8>(wide(steps.second)));
  const auto high = hn::Or(hn::ShiftLeft<16>(wide(steps.third)), hn::ShiftLeft<24>(wide(steps.fourth)));
  return hn::BitCast(d, hn::Or(low, high));
#endif
}

// A vector of channels of all pixels.
template <class Dot>
class TapsPanel {
  using Sum = mm::ByteSum;
  static constexpr mm::ByteSumTag d{};
  static constexpr size_t kLanes = mm::kByteLanes;
  // Code for four pixels at once is large: not for old CPUs, and not where part of a vector is loaded byte by
  // byte.
  static constexpr bool kFast = !HWY_ARCH_X86 || HWY_TARGET <= HWY_AVX2;
  static constexpr bool kPartial = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL;

 public:
  TapsPanel(const ByteTaps& t, size_t panel)
      : t_(t),
        fours_((t.taps + 3) / 4),
        rows_(t.line_count * fours_),
        channel_(panel * kLanes),
        flip_(hn::Set(d, t.flipped ? static_cast<int32_t>(0x80808080) : 0)),
        start_(hn::Mul(hn::LoadU(d, t.sums + channel_), hn::Set(d, -t.offset))) {
    const size_t panels = t.layout.panels();
    const size_t before = panel / math::kBytePanels * math::kBytePanels;
    width_ = std::min(math::kBytePanels, panels - before) * kLanes * 4;
    weights_ = t.weights + (before * t.together * rows_ + panel - before) * kLanes * 4;
    if (t.zeros) zeros_ = hn::LoadU(d, t.zeros + channel_);
    if (t.results && t.results->bias)
      start_ = hn::Add(start_, hn::LoadN(d, t.results->bias + channel_, t.layout.n - channel_));
    if (t.results) scale_.Load(*t.results->scales, channel_);
  }

  template <bool kWhole>
  void Run() const {
    if constexpr (kFast && (kWhole || kPartial)) {
      // The last four may be some of those before them, again.
      const auto fours = [&](auto run) HWY_ATTR {
        for (size_t pixel = 0; pixel < t_.pixels; pixel += 4) run(std::min(pixel, t_.pixels - 4));
      };
      if (t_.pixels >= 4) {
        if (t_.together == 4) return fours([&](size_t at) HWY_ATTR { Pixels<4, 1, kWhole>(at); });
        if (t_.together >= 2) return fours([&](size_t at) HWY_ATTR { Pixels<2, 2, kWhole>(at); });
        return fours([&](size_t at) HWY_ATTR { Pixels<1, 4, kWhole>(at); });
      }
    }
    for (size_t pixel = 0; pixel < t_.pixels; ++pixel) Pixels<1, 1, kWhole>(pixel);
  }

 private:
  static HWY_INLINE typename Dot::WeightBytes Weights(const int8_t* at) {
    constexpr hn::Repartition<int8_t, mm::ByteSumTag> bytes{};
    return Dot::Weights(hn::BitCast(d, hn::LoadU(bytes, at)));
  }

  // Groups of pixels that share rows; a load of weights serves all groups.
  template <size_t kTogether, size_t kGroups, bool kWhole>
  HWY_INLINE void Pixels(size_t pixel) const {
    const size_t left = t_.layout.n - channel_;
    const size_t step = t_.tap_step;
    const size_t group = kTogether * t_.pixel_step;
    const size_t last = (kTogether - 1) * t_.step + t_.taps - 1 - 4 * (fours_ - 1);  // tap of the last four
    const FourSteps inner{step, 2 * step, 3 * step};
    const FourSteps end{std::min<size_t>(1, last) * step, std::min<size_t>(2, last) * step,
                        std::min<size_t>(3, last) * step};
    Sum sums[kGroups * kTogether], inputs[kGroups];
#pragma GCC unroll 4
    for (size_t g = 0; g < kGroups; ++g) {
      inputs[g] = hn::Zero(d);
#pragma GCC unroll 4
      for (size_t i = 0; i < kTogether; ++i) sums[g * kTogether + i] = start_;
    }
    const int8_t* weights = weights_;
    for (size_t line = 0; line < t_.line_count; ++line) {
      const uint8_t* at = t_.lines[line] + pixel * t_.pixel_step + channel_;
      for (size_t four = 1; four <= fours_; ++four, at += 4 * step, weights += width_) {
        decltype(Dot::Row(start_)) rows[kGroups];
        const FourSteps& steps = four < fours_ ? inner : end;
#pragma GCC unroll 4
        for (size_t g = 0; g < kGroups; ++g) {
          rows[g] = Dot::Row(hn::Xor(FourTaps<kWhole>(at + g * group, steps, left), flip_));
          if (t_.zeros) inputs[g] = Dot::Add(inputs[g], rows[g], Dot::Weights(hn::Set(d, 0x01010101)));
        }
#pragma GCC unroll 4
        for (size_t i = 0; i < kTogether; ++i) {
          const auto w = Weights(weights + i * rows_ * width_);
#pragma GCC unroll 4
          for (size_t g = 0; g < kGroups; ++g) {
            Sum& sum = sums[g * kTogether + i];
            sum = Dot::Add(sum, rows[g], w);
          }
        }
      }
    }
    if (t_.zeros) {
      const Sum moved = hn::Set(d, static_cast<int32_t>(4 * rows_) * t_.offset);
#pragma GCC unroll 4
      for (size_t g = 0; g < kGroups; ++g) {
        const Sum more = hn::Mul(zeros_, hn::Sub(inputs[g], moved));
#pragma GCC unroll 4
        for (size_t i = g * kTogether; i < (g + 1) * kTogether; ++i) sums[i] = hn::Add(sums[i], more);
      }
    }
#pragma GCC unroll 1
    for (size_t i = 0; i < kGroups * kTogether; ++i) Store<kWhole>(pixel + i, sums[i]);
  }

  template <bool kWhole>
  HWY_INLINE void Store(size_t pixel, Sum sum) const {
    const size_t at = pixel * t_.layout.n + channel_;
    const size_t left = t_.layout.n - channel_;
    if (t_.results) return StoreBytes(scale_(sum), left, static_cast<uint8_t*>(t_.out) + at);
    if constexpr (kWhole) hn::StoreU(sum, d, static_cast<int32_t*>(t_.out) + at);
    else hn::StoreN(sum, d, static_cast<int32_t*>(t_.out) + at, left);
  }

  const ByteTaps& t_;
  const size_t fours_, rows_, channel_;
  size_t width_;  // bytes of weights to the next row
  const int8_t* weights_;
  Sum flip_, start_, zeros_;
  ChannelScale scale_;
};

template <class Dot>
HWY_NOINLINE void RunTaps(const ByteTaps& t) {
  for (size_t panel = 0; panel < t.layout.panels(); ++panel) {
    const TapsPanel<Dot> run(t, panel);
    if ((panel + 1) * mm::kByteLanes <= t.layout.n) run.template Run<true>();
    else run.template Run<false>();
  }
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
