// SPDX-License-Identifier: Apache-2.0
#define HWY_WANT_AVX3_DL
#include "plugins/cpu/byte_code.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/byte_code.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/common/byte_product-inl.h"
#include "plugins/common/fixed_point-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace cm = common::HWY_NAMESPACE;

using Sum = cm::ByteSum;
constexpr cm::ByteSumTag sums{};
constexpr size_t kLanes = cm::kByteLanes;

using cm::HighProduct;
using cm::ShiftedHalfAway;
using cm::ShiftedHalfUp;
using cm::ShiftedLeft;

HWY_INLINE void StoreChannels(const ByteResults& r, size_t channel, size_t count, Sum sum, uint8_t* out) {
  const hn::RebindToUnsigned<decltype(sums)> du;
  const hn::Rebind<uint8_t, decltype(sums)> d8;
  const bool whole = count >= kLanes;
  if (r.bias)
    sum = hn::Add(sum, whole ? hn::LoadU(sums, r.bias + channel) : hn::LoadN(sums, r.bias + channel, count));
  const ByteScales& s = *r.scales;
  const auto of = [&](const std::vector<int32_t>& by) HWY_ATTR {
    return s.per_channel() ? hn::LoadU(sums, by.data() + channel) : hn::Set(sums, by[0]);
  };
  if (s.any_left) sum = ShiftedLeft(sum, of(s.left));
  const Sum high = HighProduct(sum, of(s.values)), right = of(s.right);
  const Sum scaled = r.round_half_up ? ShiftedHalfUp(high, right) : ShiftedHalfAway(high, right);
  const Sum clamped =
      hn::Min(hn::Max(scaled, hn::Set(sums, r.lowest - r.zero)), hn::Set(sums, r.highest - r.zero));
  const auto bytes = hn::TruncateTo(d8, hn::BitCast(du, hn::Add(clamped, hn::Set(sums, r.zero))));
  if (whole) hn::StoreU(bytes, d8, out);
  else hn::StoreN(bytes, d8, out, count);
}

void Store(const ByteResults& results, size_t first_channel, size_t count, const int32_t* from,
           uint8_t* out) {
  for (size_t i = 0; i < count; i += kLanes) {
    const size_t left = count - i;
    const Sum sum = left >= kLanes ? hn::LoadU(sums, from + i) : hn::LoadN(sums, from + i, left);
    StoreChannels(results, first_channel + i, left, sum, out + i);
  }
}

void Multiply(const ByteTask& task, int32_t* out, size_t out_stride, size_t begin, size_t end) {
  const size_t before = begin * common::kBytePanels * kLanes;
  const auto store = [&](size_t row, size_t first, size_t outputs, const int32_t* from) HWY_ATTR {
    for (size_t i = 0; i < outputs; i += kLanes)
      hn::StoreU(hn::Load(sums, from + i), sums, out + row * out_stride + first - before + i);
  };
  if (task.layout.halves) cm::MultiplyHalves(task, begin, end, store);
  else cm::MultiplyBytes(task, begin, end, store);
}

void MultiplyAndStore(const ByteStoreTask& task, size_t begin, size_t end) {
  cm::MultiplyBytes(task.product, begin, end,
                    [&](size_t row, size_t first, size_t outputs, const int32_t* from) HWY_ATTR {
                      const size_t count = std::min(outputs, task.product.layout.outputs - first);
                      Store(*task.results, task.first_channel + first, count, from,
                            task.out + row * task.out_stride + first);
                    });
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

const ByteCode& BytesCode() {
  static constexpr ByteCode code{kLanes, {cm::ByteDot::kUnsignedRows}, Multiply, MultiplyAndStore, Store,
                                 SumRows};
  return code;
}

}  // namespace fusebox::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::cpu {

ByteScales::ByteScales(const std::vector<common::FixedPoint>& scales) {
  for (const common::FixedPoint& by : scales) {
    values.push_back(by.value);
    left.push_back(std::max(by.shift, 0));
    right.push_back(std::max(-by.shift, 0));
    any_left = any_left || by.shift > 0;
  }
  for (auto* by : {&values, &left, &right}) by->resize(scales.size() + kSlack);
}

std::vector<const ByteCode*> ByteCodes() { return FUSEBOX_SIMD_TABLES(ByteCode, BytesCode); }

}  // namespace fusebox::cpu
#endif
