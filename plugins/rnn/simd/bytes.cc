// SPDX-License-Identifier: Apache-2.0
#define HWY_WANT_AVX3_DL
#include "plugins/rnn/simd/bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/common/byte_product-inl.h"
#include "plugins/rnn/simd/lstm_cell-inl.h"
#include "plugins/rnn/simd/vector-inl.h"
#include "plugins/rnn/simd/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace cm = common::HWY_NAMESPACE;

static_assert(cm::kByteLanes == kFloatLanes);

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

void Multiply(const ByteTask& task, int32_t* out, size_t out_stride, size_t begin, size_t end) {
  cm::MultiplyBytes(
      task, begin, end, [&](size_t row, size_t first, size_t outputs, const int32_t* sums) HWY_ATTR {
        for (size_t i = 0; i < outputs; i += cm::kByteLanes)
          hn::StoreU(hn::Load(cm::byte_sums, sums + i), cm::byte_sums, out + row * out_stride + first + i);
      });
}

void MultiplyScaled(const ScaledTask& task, size_t begin, size_t end) {
  const auto finish = [&](size_t row, size_t first, size_t outputs, const int32_t* sums) HWY_ATTR {
    const FloatVector row_scale = hn::Set(fd, task.row_scales[row]);
    for (size_t i = 0; i < outputs; i += cm::kByteLanes) {
      const size_t output = first + i, left = task.product.layout.outputs - output;
      const FloatVector scale = hn::Mul(hn::LoadU(fd, task.output_scales + output), row_scale);
      const FloatVector start =
          task.start ? LoadSome(task.start + row * task.start_stride + output, left) : hn::Zero(fd);
      const FloatVector sum = hn::ConvertTo(fd, hn::Load(cm::byte_sums, sums + i));
      StoreSome(hn::MulAdd(sum, scale, start), task.out + row * task.out_stride + output, left);
    }
  };
  cm::MultiplyBytes(task.product, begin, end, finish);
}

// The cells of a row and block from the sums of the product.
HWY_INLINE void FinishStep(const HybridStepTask& task, size_t row, size_t block,
                           const cm::ByteSum (&sums)[kGates]) {
  const size_t cell = block * kFloatLanes, first = cell * kGates;
  const float* const z = task.z + row * task.product.layout.padded() + first;
  const FloatVector row_scale = hn::Set(fd, task.row_scales[row]);
  FloatVector gates[kGates];
#pragma GCC unroll 4
  for (size_t gate = 0; gate < kGates; ++gate) {
    const FloatVector scale =
        hn::Mul(hn::LoadU(fd, task.output_scales + first + gate * kFloatLanes), row_scale);
    gates[gate] = hn::MulAdd(hn::ConvertTo(fd, sums[gate]), scale, hn::LoadU(fd, z + gate * kFloatLanes));
  }
  FinishBlock(task, gates, task.c + row * task.cells + cell, task.h_after + row * task.h_after_stride + cell,
              task.cells - cell);
}

template <int kRows>
HWY_INLINE void StepTile(const HybridStepTask& task, size_t row, size_t block) {
  const ByteTask& product = task.product;
  const uint8_t* rows[kRows];
  cm::ByteSums<kRows, kGates> sums;
  const size_t first = block * kGates * kFloatLanes;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    rows[r] = static_cast<const uint8_t*>(product.rows) + (row + r) * product.stride;
#pragma GCC unroll 4
    for (size_t gate = 0; gate < kGates; ++gate)
      sums[r][gate] = cm::ByteStart(product, row + r, first + gate * kFloatLanes);
  }
  cm::AddByteProducts<kRows, kGates>(rows, product.layout.columns, cm::FlipOf(product),
                                     cm::GroupOf(product, block), sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) FinishStep(task, row + r, block, sums[r]);
}

#if FUSEBOX_BYTE_MATRIX
HWY_INLINE void StepUnits(const HybridStepTask& task, size_t block) {
  HWY_ALIGN int32_t stored[cm::kMatrixRows * kGates * kFloatLanes];
  for (size_t row = 0; row < task.product.count; row += cm::kMatrixRows) {
    const size_t count = std::min<size_t>(cm::kMatrixRows, task.product.count - row);
    cm::StoreUnitSums<kGates>(task.product, row, count, block, stored);
#pragma GCC unroll 1
    for (size_t r = 0; r < count; ++r) {
      cm::ByteSum sums[kGates];
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate)
        sums[gate] = hn::Load(cm::byte_sums, stored + (r * kGates + gate) * kFloatLanes);
      FinishStep(task, row + r, block, sums);
    }
  }
}
#endif

void LstmStep(const HybridStepTask& task, size_t begin, size_t end) {
  constexpr int kRows = std::min(4, cm::ByteDot::kRows);
  for (size_t i = begin; i < end; ++i) {
    const size_t block = task.reverse ? end - 1 - (i - begin) : i;
#if FUSEBOX_BYTE_MATRIX
    if (task.product.layout.unit == 8) {
      StepUnits(task, block);
      continue;
    }
#endif
    size_t row = 0;
    for (; row + kRows <= task.product.count; row += kRows) StepTile<kRows>(task, row, block);
    for (; row < task.product.count; ++row) StepTile<1>(task, row, block);
  }
}

template <size_t kUnit>
constexpr ByteCode kCode{kFloatLanes, kUnit,          {cm::ByteDot::kUnsignedRows},
                         Multiply,    MultiplyScaled, LstmStep,
                         Range,       Quantize,       MultiplyWords,
                         Sigmoids,    Tanhs,          AddPeephole,
                         UpdateCells, ScaleProducts,  NarrowWords};

const ByteCode& BytesCode() { return kCode<4>; }
#if FUSEBOX_BYTE_MATRIX
const ByteCode& BytesCodeOfUnits() { return kCode<8>; }
#endif

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

std::vector<const ByteCode*> ByteCodes() { return FUSEBOX_SIMD_TABLES(ByteCode, BytesCode); }

}  // namespace fusebox::rnn
#endif
