// SPDX-License-Identifier: Apache-2.0
// Cells in 16-bit fixed point, bit-exact with the integer LSTM of TFLite. Compiled once per target.
//
// Sigmoid and tanh: the exponential of a quarter by its series, times powers of e for the other bits, and a
// division by three Newton steps. Comments state fractional bits; 1 with 15 of them is 32767.
#if defined(FUSEBOX_RNN_SIMD_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_RNN_SIMD_WORDS_INL_H_
#undef FUSEBOX_RNN_SIMD_WORDS_INL_H_
#else
#define FUSEBOX_RNN_SIMD_WORDS_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/math/simd/fixed_point-inl.h"
#include "plugins/rnn/simd/bytes.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace mm = math::HWY_NAMESPACE;

using WordTag = hn::CappedTag<int16_t, 32>;
using Word = hn::Vec<WordTag>;
constexpr WordTag fw{};
constexpr size_t kWordLanes = HWY_MAX_LANES_D(WordTag);
constexpr hn::RepartitionToWide<WordTag> words32{};
using Wide = hn::Vec<hn::RepartitionToWide<WordTag>>;
constexpr hn::Rebind<int8_t, WordTag> words8{};

HWY_INLINE Word LoadWords(const int16_t* from, size_t count) {
  return HWY_LIKELY(count >= kWordLanes) ? hn::LoadU(fw, from) : hn::LoadN(fw, from, count);
}
HWY_INLINE void StoreWords(Word v, int16_t* to, size_t count) {
  if (HWY_LIKELY(count >= kWordLanes)) {
    hn::StoreU(v, fw, to);
  } else {
    hn::StoreN(v, fw, to, count);
  }
}

// Multiplies numbers with m and n fractional bits: m + n - 15 bits, rounded half up. Not both are -32768.
HWY_INLINE Word Product(Word a, Word b) { return hn::MulFixedPoint15(a, b); }
HWY_INLINE Word Constant(int value) { return hn::Set(fw, static_cast<int16_t>(value)); }

// exp(x), both of 15 bits, for x in [-1/4, 0): a series around -1/8. Terms are not negative.
HWY_INLINE Word ExpOfQuarter(Word a) {
  const Word center = Constant(28918);  // exp(-1/8), 1/3
  const Word third = Constant(10923);
  const Word x = hn::Add(a, Constant(1 << 12));
  const Word square = Product(x, x);
  const Word cube = Product(square, x);
  const Word fourth = hn::ShiftRight<2>(hn::Add(Product(square, square), Constant(2)));
  const Word terms = hn::Add(Product(hn::Add(fourth, cube), third), square);
  const Word rest = hn::ShiftRight<1>(hn::Add(terms, Constant(1)));
  return hn::SaturatedAdd(center, Product(center, hn::Add(x, rest)));
}

// exp(x) of 15 bits for x < 0 of 15 - `whole` bits.
HWY_INLINE Word Exp(Word x, int whole) {
  constexpr int16_t kPowers[] = {25520, 19875, 12055, 4435, 600, 11, 0};  // exp(-2^k), k = -2, -1, ...
  const int bits = 15 - whole;
  const int quarter = 1 << (bits - 2);
  const Word part = hn::Sub(hn::And(x, Constant(quarter - 1)), Constant(quarter));
  const Word others = hn::Sub(part, x);
  Word result = ExpOfQuarter(hn::ShiftLeftSame(part, whole));
  for (int k = 0; k < 7 && k - 2 < whole; ++k) {
    const auto has = hn::TestBit(others, Constant(quarter << k));
    result = hn::IfThenElse(has, Product(result, Constant(kPowers[k])), result);
  }
  return whole > 5 ? hn::IfThenElseZero(hn::Ge(x, Constant(-(32 << bits))), result) : result;
}

// 2 / (1 + x) of 13 bits for x in [0, 1] of 15.
HWY_INLINE Word TwoOverOnePlus(Word x) {
  const Word half = hn::Add(hn::ShiftRight<1>(x), Constant(1 << 14));
  Word y = hn::Add(Constant(23130), Product(half, Constant(-15420)));  // 48/17 and -32/17 of 13 bits
  for (int i = 0; i < 3; ++i) {
    const Word error = hn::Sub(Constant(1 << 13), Product(half, y));
    y = hn::Add(y, hn::ShiftLeft<2>(Product(y, error)));
  }
  return y;
}

HWY_INLINE Word MinusMagnitude(Word x) { return hn::Min(x, hn::Sub(hn::Zero(fw), x)); }

// x has `bits` fractional bits, the result 15.
HWY_INLINE Word FixedSigmoid(Word x, int bits) {
  const Word twice = TwoOverOnePlus(Exp(MinusMagnitude(x), 15 - bits));
  const Word of_magnitude = hn::SaturatedAdd(twice, twice);
  const Word zero = hn::Zero(fw);
  const Word negative = hn::Sub(Constant(32767), of_magnitude);
  return hn::IfThenElse(hn::Eq(x, zero), Constant(1 << 14),
                        hn::IfThenElse(hn::Gt(x, zero), of_magnitude, negative));
}

// x has `bits` fractional bits, the result 15. exp(-2 |x|): the same raw number with one bit less.
HWY_INLINE Word FixedTanh(Word x, int bits) {
  const Word e = Exp(MinusMagnitude(x), 16 - bits);
  const Word zero = hn::Zero(fw);
  const Word quarter = hn::Sub(TwoOverOnePlus(e), Constant(1 << 13));
  const Word half = hn::SaturatedAdd(quarter, quarter);
  const Word magnitude = hn::SaturatedAdd(half, half);
  const Word with_sign = hn::IfThenElse(hn::Gt(x, zero), magnitude, hn::Sub(zero, magnitude));
  return hn::IfThenElseZero(hn::Ne(x, zero), with_sign);
}

void Sigmoids(int16_t* values, int bits, size_t count) {
  for (size_t i = 0; i < count; i += kWordLanes)
    StoreWords(FixedSigmoid(LoadWords(values + i, count - i), bits), values + i, count - i);
}

void Tanhs(const int16_t* from, int bits, int16_t* to, size_t count) {
  for (size_t i = 0; i < count; i += kWordLanes)
    StoreWords(FixedTanh(LoadWords(from + i, count - i), bits), to + i, count - i);
}

// The results of f(half) for both halves, saturated; half(v) returns that half of a vector, 32 bits wide.
template <class F>
HWY_INLINE Word OfHalves(const F& f) {
  const auto low = [](Word v) HWY_ATTR { return hn::PromoteLowerTo(words32, v); };
  const auto high = [](Word v) HWY_ATTR { return hn::PromoteUpperTo(words32, v); };
  return hn::OrderedDemote2To(fw, f(low), f(high));
}

// scaled + addend, saturated to 16 bits by whoever stores it; no sum overflows.
template <class V>
HWY_INLINE V AddScaled(V scaled, V addend) {
  const hn::DFromV<V> d;
  return hn::Add(hn::Min(hn::Max(scaled, hn::Set(d, -(1 << 16))), hn::Set(d, 1 << 16)), addend);
}

void AddPeephole(const WordPeephole& task) {
  for (size_t i = 0; i < task.cells; i += kWordLanes) {
    const size_t left = task.cells - i;
    const Word p = LoadWords(task.weights + i, left);
    const Word c = LoadWords(task.c + i, left);
    const Word sums = LoadWords(task.sums + i, left);
    const auto sum = [&](auto half) HWY_ATTR {
      return AddScaled(mm::Times(task.by, hn::Mul(half(p), half(c))), half(sums));
    };
    StoreWords(OfHalves(sum), task.sums + i, left);
  }
}

// Adds adjacent numbers, into 64 bits.
template <class V>
HWY_INLINE auto WideSums(V v) {
  if constexpr (sizeof(hn::TFromV<V>) == 8) return v;
  else return WideSums(hn::SumsOf2(v));
}

void SumWords(const int16_t* values, size_t count, int64_t* sum, int64_t* squares) {
  const hn::RepartitionToWide<decltype(words32)> words64;
  auto total = hn::Zero(words64);
  auto total_squares = total;
  for (size_t i = 0; i < count; i += kWordLanes) {
    const Word v = count - i >= kWordLanes ? hn::LoadU(fw, values + i) : hn::LoadN(fw, values + i, count - i);
    const Wide low = hn::PromoteLowerTo(words32, v);
    const Wide high = hn::PromoteUpperTo(words32, v);
    total = hn::Add(total, WideSums(v));
    total_squares =
        hn::Add(total_squares, hn::Add(WideSums(hn::Mul(low, low)), WideSums(hn::Mul(high, high))));
  }
  *sum = hn::ReduceSum(words64, total);
  *squares = hn::ReduceSum(words64, total_squares);
}

// x / 1024, half away from zero, saturated to 32 bits.
template <class V>
HWY_INLINE V NarrowedBy1024(V x) {
  const hn::DFromV<V> d;
  const V sign = hn::BroadcastSignBit(x);
  const V magnitude = hn::Sub(hn::Xor(x, sign), sign);
  const V rounded = hn::ShiftRight<10>(hn::Add(magnitude, hn::Set(d, 512)));
  const V most = hn::Sub(hn::Set(d, INT32_MAX), sign);
  return hn::Sub(hn::Xor(hn::Min(rounded, most), sign), sign);
}

HWY_INLINE Wide Normalized(const WordNorm& task, Wide value, Wide coefficient, Wide bias) {
  const hn::RepartitionToWide<decltype(words32)> words64;
  const Wide normal =
      mm::Times(task.deviation, hn::Sub(hn::ShiftLeft<10>(value), hn::Set(words32, task.mean)));
  const auto of_odd = hn::ShiftRight<32>(hn::BitCast(words64, bias));
  const auto of_even = hn::ShiftRight<32>(hn::ShiftLeft<32>(hn::BitCast(words64, bias)));
  const auto even = NarrowedBy1024(hn::Add(hn::MulEven(normal, coefficient), of_even));
  const auto odd = NarrowedBy1024(hn::Add(hn::MulOdd(normal, coefficient), of_odd));
  const Wide sized = hn::OddEven(hn::BitCast(words32, hn::ShiftLeft<32>(odd)), hn::BitCast(words32, even));
  return mm::Times(task.by, sized);
}

void Normalize(const WordNorm& task) {
  constexpr hn::Rebind<int16_t, decltype(words32)> narrow{};
  const size_t lanes = hn::Lanes(words32);
  size_t i = 0;
  for (; i + lanes <= task.cells; i += lanes) {
    const auto of = [&](const int16_t* from)
                        HWY_ATTR { return hn::PromoteTo(words32, hn::LoadU(narrow, from + i)); };
    const Wide normal =
        Normalized(task, of(task.values), of(task.coefficients), hn::LoadU(words32, task.bias + i));
    hn::StoreU(hn::DemoteTo(narrow, normal), narrow, task.values + i);
  }
  if (const size_t left = task.cells - i; left > 0) {
    const auto of = [&](const int16_t* from)
                        HWY_ATTR { return hn::PromoteTo(words32, hn::LoadN(narrow, from + i, left)); };
    const Wide normal =
        Normalized(task, of(task.values), of(task.coefficients), hn::LoadN(words32, task.bias + i, left));
    hn::StoreN(hn::DemoteTo(narrow, normal), narrow, task.values + i, left);
  }
}

void UpdateCells(const WordCells& task) {
  const auto by_15 = hn::Set(words32, 15);
  const auto by_bits = hn::Set(words32, 30 - task.cell_bits);
  const Word clip = Constant(task.cell_clip > 0 ? task.cell_clip : 32767);
  const Word least = Constant(task.cell_clip > 0 ? -task.cell_clip : -32768);
  for (size_t i = 0; i < task.cells; i += kWordLanes) {
    const size_t left = task.cells - i;
    const Word forget = LoadWords(task.forget + i, left);
    const Word c = LoadWords(task.c + i, left);
    const Word gate = LoadWords(task.gate + i, left);
    const Word in = task.in ? LoadWords(task.in + i, left) : hn::Sub(Constant(32767), forget);
    const auto sum = [&](auto half) HWY_ATTR {
      const Wide kept = hn::Mul(half(forget), half(c));
      const Wide added = hn::Mul(half(in), half(gate));
      return hn::Add(mm::ShiftedHalfAway(kept, by_15), mm::ShiftedHalfAway(added, by_bits));
    };
    StoreWords(hn::Min(hn::Max(OfHalves(sum), least), clip), task.c + i, left);
  }
}

// As h + (1 - gate) * (candidate - h), whose product is zero for a gate of one.
void Blend(const WordBlend& task) {
  const auto by_15 = hn::Set(words32, 15);
  const Wide one = hn::Set(words32, 32767);
  for (size_t i = 0; i < task.cells; i += kWordLanes) {
    const size_t left = task.cells - i;
    const Word gate = LoadWords(task.gate + i, left);
    const Word candidate = hn::ShiftRightSame(LoadWords(task.candidate + i, left), 15 - task.h_bits);
    const Word h = LoadWords(task.h + i, left);
    const auto next = [&](auto half) HWY_ATTR {
      const Wide change = hn::Mul(hn::Sub(one, half(gate)), hn::Sub(half(candidate), half(h)));
      return hn::Add(half(h), mm::ShiftedHalfAway(change, by_15));
    };
    StoreWords(OfHalves(next), task.h + i, left);
  }
}

// saturated(words + zero), clamped
HWY_INLINE void StoreBytes(Word words, int32_t zero, int32_t least, int32_t most, int8_t* to, size_t count) {
  const Word sum = hn::SaturatedAdd(words, Constant(zero));
  const auto bytes = hn::DemoteTo(words8, hn::Min(hn::Max(sum, Constant(least)), Constant(most)));
  if (HWY_LIKELY(count >= kWordLanes)) {
    hn::StoreU(bytes, words8, to);
  } else {
    hn::StoreN(bytes, words8, to, count);
  }
}

void ScaleProducts(const WordProducts& task) {
  for (size_t i = 0; i < task.cells; i += kWordLanes) {
    const size_t left = task.cells - i;
    const Word a = LoadWords(task.a + i, left);
    const Word b = task.b ? LoadWords(task.b + i, left) : Constant(1);
    const auto product = [&](auto half) HWY_ATTR { return mm::Times(task.by, hn::Mul(half(a), half(b))); };
    StoreBytes(OfHalves(product), task.zero, -128, 127, task.out + i, left);
  }
}

void NarrowWords(const int16_t* from, size_t count, int32_t zero, int32_t least, int32_t most, int8_t* to) {
  for (size_t i = 0; i < count; i += kWordLanes)
    StoreBytes(LoadWords(from + i, count - i), zero, least, most, to + i, count - i);
}

template <class Dot>
void MultiplyWords(const WordTask& task, size_t begin, size_t end) {
  constexpr hn::Rebind<int16_t, mm::ByteSumTag> narrow;
  const FixedScales& scales = *task.scales;
  const auto of = [](const std::vector<int32_t>& by, size_t output)
                      HWY_ATTR { return hn::LoadU(mm::byte_sums, by.data() + output); };
  const auto finish = [&](size_t row, size_t first, size_t outputs, const int32_t* from) HWY_ATTR {
    for (size_t i = 0; i < outputs; i += mm::kByteLanes) {
      const size_t output = first + i;
      mm::ByteSum sum = hn::Load(mm::byte_sums, from + i);
      if (scales.any_left) sum = mm::ShiftedLeft(sum, of(scales.left, output));
      const auto high = mm::HighProduct(sum, of(scales.values, output));
      auto scaled = mm::ShiftedHalfAway(high, of(scales.right, output));
      if (task.start)
        scaled = AddScaled(
            scaled,
            hn::PromoteTo(mm::byte_sums, hn::LoadU(narrow, task.start + row * task.start_stride + output)));
      hn::StoreU(hn::DemoteTo(narrow, scaled), narrow, task.out + row * task.out_stride + output);
    }
  };
  mm::MultiplyBytes<Dot>(task.product, begin, end, mm::ByRow(finish));
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
