// SPDX-License-Identifier: Apache-2.0
#define HWY_WANT_AVX3_DL
#include "plugins/cpu/quantized/byte_code.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/quantized/byte_code.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/cpu/quantized/byte_scale-inl.h"
#include "plugins/cpu/quantized/byte_taps-inl.h"
#include "plugins/math/gemm/bytes-inl.h"
#include "plugins/math/simd/fixed_point-inl.h"
#include "plugins/math/simd/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace mm = math::HWY_NAMESPACE;

using Sum = mm::ByteSum;
constexpr mm::ByteSumTag sums{};
constexpr size_t kLanes = mm::kByteLanes;

using mm::HighProduct;
using mm::ShiftedHalfAway;
using mm::ShiftedLeft;

// Sums of some rows, [rows][stride].
struct StoredSums {
  const int32_t* at;
  size_t count, stride;
};

HWY_NOINLINE void StoreRows(const ByteResults& results, size_t first_channel, size_t count,
                            const StoredSums& rows, uint8_t* out, size_t out_stride) {
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t left = count - i;
    const size_t channel = first_channel + i;
    const auto load = [&](const int32_t* at) HWY_ATTR {
      return left >= kLanes ? hn::LoadU(sums, at) : hn::LoadN(sums, at, left);
    };
    const Sum bias = results.bias ? load(results.bias + channel) : hn::Zero(sums);
    ChannelScale scale;
    scale.Load(*results.scales, channel);
    for (size_t r = 0; r < rows.count; ++r)
      StoreBytes(scale(hn::Add(load(rows.at + r * rows.stride + i), bias)), left, out + r * out_stride + i);
  }
}

void Store(const ByteResults& results, size_t first_channel, size_t count, const int32_t* from,
           uint8_t* out) {
  StoreRows(results, first_channel, count, {from, 1, 0}, out, 0);
}

// Product and sum stay two roundings: this file is compiled without contraction.
void StoreFloats(const FloatResults& results, float scale, size_t first_channel, size_t count,
                 const int32_t* from, float* out) {
  const mm::FloatVector low = hn::Set(mm::fd, results.lowest);
  const mm::FloatVector high = hn::Set(mm::fd, results.highest);
  const mm::FloatVector of_row = hn::Set(mm::fd, scale);
  const mm::FloatVector one = hn::Mul(of_row, hn::Set(mm::fd, results.scales[0]));
  for (size_t i = 0; i < count; i += mm::kFloatLanes) {
    const size_t left = count - i;
    const size_t channel = first_channel + i;
    const auto number = left >= mm::kFloatLanes ? hn::LoadU(sums, from + i) : hn::LoadN(sums, from + i, left);
    const mm::FloatVector by =
        results.per_channel ? hn::Mul(of_row, mm::LoadSome(results.scales + channel, left)) : one;
    mm::FloatVector y = hn::Mul(hn::ConvertTo(mm::fd, number), by);
    if (results.bias) y = hn::Add(y, mm::LoadSome(results.bias + channel, left));
    mm::StoreSome(mm::Clamp(mm::fd, y, low, high), out + i, left);
  }
}

template <class Dot>
void Multiply(const ByteTask& task, int32_t* out, size_t out_stride, size_t begin, size_t end) {
  const size_t before = begin * math::kBytePanels * kLanes;
  const auto store = [&](size_t row, size_t first, size_t outputs, const int32_t* from) HWY_ATTR {
    for (size_t i = 0; i < outputs; i += kLanes)
      hn::StoreU(hn::Load(sums, from + i), sums, out + row * out_stride + first - before + i);
  };
  if (task.layout.int4) mm::MultiplyInt4<mm::AsStored<Dot>>(task, begin, end, mm::ByRow(store));
  else mm::MultiplyBytes<mm::AsStored<Dot>>(task, begin, end, mm::ByRow(store));
}

template <class Dot>
void MultiplyAndStore(const ByteStoreTask& task, size_t begin, size_t end) {
  mm::MultiplyBytes<mm::AsStored<Dot>>(
      task.product, begin, end,
      [&](size_t row, size_t rows, size_t first, size_t outputs, const int32_t* from) HWY_ATTR {
        StoreRows(*task.results, task.first_channel + first, std::min(outputs, task.product.layout.n - first),
                  {from, rows, outputs}, task.out + row * task.out_stride + first, task.out_stride);
      });
}

void Flip(const void* rows, size_t count, size_t stride, size_t columns, void* to) {
  const hn::Repartition<uint8_t, decltype(sums)> d8;
  const auto by = hn::Set(d8, 0x80);
  const size_t lanes = hn::Lanes(d8);
  auto* out = static_cast<uint8_t*>(to);
  if (stride == columns) {  // one long row
    columns *= count;
    count = 1;
  }
  for (size_t i = 0; i < count; ++i, out += columns) {
    const auto* const row = static_cast<const uint8_t*>(rows) + i * stride;
    size_t k = 0;
    for (; k + lanes <= columns; k += lanes) hn::StoreU(hn::Xor(hn::LoadU(d8, row + k), by), d8, out + k);
    for (; k < columns; ++k) out[k] = row[k] ^ 0x80;
  }
}

void SumRows(const void* rows, size_t count, size_t stride, size_t columns, bool is_unsigned, int32_t less,
             int32_t* to) {
  const hn::Repartition<uint8_t, decltype(sums)> d8;
  const hn::Repartition<uint64_t, decltype(d8)> d64;
  const auto flip = hn::Set(d8, is_unsigned ? 0 : 0x80);
  const size_t lanes = hn::Lanes(d8);
  const int64_t moved = is_unsigned ? 0 : 128 * static_cast<int64_t>(columns);
  for (size_t i = 0; i < count; ++i) {
    const auto* const row = static_cast<const uint8_t*>(rows) + i * stride;
    auto total = hn::Zero(d64);
    size_t k = 0;
    for (; k + lanes <= columns; k += lanes)
      total = hn::Add(total, hn::SumsOf8(hn::Xor(hn::LoadU(d8, row + k), flip)));
    auto sum = static_cast<int64_t>(hn::ReduceSum(d64, total));
    for (; k < columns; ++k) sum += row[k] ^ (is_unsigned ? 0 : 0x80);
    to[i] = static_cast<int32_t>(sum - moved - less);
  }
}

// As FixedPoint::Times.
HWY_INLINE Sum Times(Sum x, const math::FixedPoint& by) {
  if (by.shift > 0) x = ShiftedLeft(x, hn::Set(sums, by.shift));
  return ShiftedHalfAway(HighProduct(x, hn::Set(sums, by.value)), hn::Set(sums, std::max(-by.shift, 0)));
}

HWY_INLINE Sum BinaryOf(const ByteBinary& b, Sum x, Sum y) {
  if (b.op == ByteBinary::Op::kMul) return hn::Mul(x, y);
  const Sum shift = hn::Set(sums, b.shift);
  x = Times(hn::Shl(x, shift), b.x_scale);
  y = Times(hn::Shl(y, shift), b.y_scale);
  if (b.op == ByteBinary::Op::kAdd) return hn::Add(x, y);
  const Sum d = hn::Sub(x, y);
  return b.op == ByteBinary::Op::kSub ? d : hn::Mul(d, d);
}

void Binary(const ByteBinary& b, const uint8_t* x, int64_t x_step, const uint8_t* y, int64_t y_step,
            uint8_t* z, size_t count) {
  const hn::RebindToUnsigned<decltype(sums)> du;
  const hn::Rebind<uint8_t, decltype(sums)> d8;
  const int32_t moved = b.is_signed ? 128 : 0;
  const auto flip = hn::Set(d8, static_cast<uint8_t>(moved));
  const Sum x_zero = hn::Set(sums, b.x_zero + moved);
  const Sum y_zero = hn::Set(sums, b.y_zero + moved);
  const Sum low = hn::Set(sums, b.lowest - b.zero);
  const Sum high = hn::Set(sums, b.highest - b.zero);
  const Sum zero = hn::Set(sums, b.zero);
  const auto load = [&](const uint8_t* from, int64_t step, size_t i, size_t left) HWY_ATTR {
    return step == 0        ? hn::Set(d8, *from)
           : left >= kLanes ? hn::LoadU(d8, from + i)
                            : hn::LoadN(d8, from + i, left);
  };
  const auto number = [&](auto bytes, Sum less)
                          HWY_ATTR { return hn::Sub(hn::PromoteTo(sums, hn::Xor(bytes, flip)), less); };
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t left = count - i;
    const Sum value =
        BinaryOf(b, number(load(x, x_step, i, left), x_zero), number(load(y, y_step, i, left), y_zero));
    const Sum inside = hn::Min(hn::Max(Times(value, b.z_scale), low), high);
    const auto bytes = hn::TruncateTo(d8, hn::BitCast(du, hn::Add(inside, zero)));
    if (left >= kLanes) hn::StoreU(bytes, d8, z + i);
    else hn::StoreN(bytes, d8, z + i, left);
  }
}

// The quotient is a double: rounded to float first, it could become a false tie.
void QuantizeExactly(const float* x, size_t count, float scale, int32_t zero, bool is_signed, uint8_t* out) {
  const hn::CappedTag<double, 8> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  const hn::Rebind<int32_t, decltype(d64)> di;
  const hn::RebindToUnsigned<decltype(di)> du;
  const hn::Rebind<uint8_t, decltype(d64)> d8;
  const size_t lanes = hn::Lanes(d64);
  const auto by = hn::Set(d64, scale);
  const auto offset = hn::Set(d64, zero);
  const auto half = hn::Set(d64, 0.5);
  const auto one = hn::Set(d64, 1.0);
  const auto low = hn::Set(d64, is_signed ? -128.0 : 0.0);
  const auto high = hn::Set(d64, is_signed ? 127.0 : 255.0);
  for (size_t i = 0; i < count; i += lanes) {
    const size_t left = count - i;
    const auto from = left >= lanes ? hn::LoadU(d32, x + i) : hn::LoadN(d32, x + i, left);
    const auto q = hn::Div(hn::PromoteTo(d64, from), by);
    const auto whole = hn::Trunc(q);
    const auto away = hn::IfThenElseZero(hn::Ge(hn::Abs(hn::Sub(q, whole)), half), hn::CopySign(one, q));
    const auto inside = hn::Min(hn::Max(hn::Add(hn::Add(whole, away), offset), low), high);
    const auto numbers = hn::DemoteTo(di, hn::IfThenElse(hn::IsNaN(q), offset, inside));
    const auto bytes = hn::TruncateTo(d8, hn::BitCast(du, numbers));
    if (left >= lanes) hn::StoreU(bytes, d8, out + i);
    else hn::StoreN(bytes, d8, out + i, left);
  }
}

// The largest quotients and zero points that Quantize computes in float.
constexpr float kMostQuotient = 512;
constexpr int32_t kMostZero = 256;
// The scales whose inverses have full precision.
constexpr float kLeastScale = 0x1p-100f;
constexpr float kMostScale = 0x1p100f;

// A product by the inverse scale differs from the quotient by less than 2^-14 up to kMostQuotient. If it is
// farther from the middle of two integers, both round to the same one. QuantizeExactly computes the others.
void Quantize(const float* x, size_t count, float scale, int32_t zero, bool is_signed, uint8_t* out) {
  const hn::Rebind<uint8_t, decltype(sums)> d8;
  const hn::RebindToUnsigned<decltype(sums)> du;
  const mm::FloatVector by = hn::Set(mm::fd, 1 / scale);
  const mm::FloatVector most = hn::Set(mm::fd, kMostQuotient);
  const mm::FloatVector near_middle = hn::Set(mm::fd, 0.5f - 0x1p-13f);
  const Sum offset = hn::Set(sums, zero);
  const Sum low = hn::Set(sums, is_signed ? -128 : 0);
  const Sum high = hn::Set(sums, is_signed ? 127 : 255);
  const bool fast = scale >= kLeastScale && scale <= kMostScale && std::abs(zero) <= kMostZero;
  size_t i = 0;
  for (; fast && i + kLanes <= count; i += kLanes) {
    const mm::FloatVector quotient = hn::Mul(hn::LoadU(mm::fd, x + i), by);
    const mm::FloatVector q = hn::Max(hn::Min(quotient, most), hn::Neg(most));
    const Sum whole = hn::NearestInt(q);
    const mm::FloatVector rest = hn::Abs(hn::Sub(q, hn::ConvertTo(mm::fd, whole)));
    if (!hn::AllFalse(mm::fd, hn::Or(hn::Gt(rest, near_middle), hn::IsNaN(quotient)))) {
      QuantizeExactly(x + i, kLanes, scale, zero, is_signed, out + i);
      continue;
    }
    const Sum inside = hn::Min(hn::Max(hn::Add(whole, offset), low), high);
    hn::StoreU(hn::TruncateTo(d8, hn::BitCast(du, inside)), d8, out + i);
  }
  QuantizeExactly(x + i, count - i, scale, zero, is_signed, out + i);
}

template <class Dot>
constexpr ByteKernels kCode{kLanes,
                            Dot::kUnit,
                            {Dot::kUnsignedRows},
                            Multiply<Dot>,
                            MultiplyAndStore<Dot>,
                            Store,
                            StoreFloats,
                            Flip,
                            SumRows,
                            RunTaps<Dot>,
                            Binary,
                            Quantize};

const ByteKernels& KernelsOfBytes() { return kCode<mm::ByteDot>; }
#if FUSEBOX_BYTE_EXTENSION
const ByteKernels& KernelsOfBytesExtended() { return kCode<mm::ExtendedByteDot>; }
#endif

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cpu {

ByteScales::ByteScales(const std::vector<math::FixedPoint>& scales, const ByteRange& range)
    : in_64_bits(std::abs(range.zero) <= kMostZeroPoint), range(range) {
  for (auto* by : {&values, &left, &right, &half, &half_below}) by->resize(scales.size() + kSlack);
  for (size_t i = 0; i < scales.size(); ++i) {
    values[i] = scales[i].value;
    left[i] = std::max(scales[i].shift, 0);
    right[i] = std::max(-scales[i].shift, 0);
    any_left = any_left || scales[i].shift > 0;
    half[i] = right[i] > 0 ? 1 << (right[i] - 1) : 0;
    half_below[i] = right[i] > 0 && range.round_half_up ? half[i] - 1 : half[i];
    in_64_bits = in_64_bits && right[i] >= 1 && right[i] <= kMostRight;
  }
}

std::vector<const ByteKernels*> AllByteKernels() { return FUSEBOX_SIMD_TABLES(ByteKernels, KernelsOfBytes); }

}  // namespace fusebox::cpu
#endif
