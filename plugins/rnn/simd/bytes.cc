// SPDX-License-Identifier: Apache-2.0
#define HWY_WANT_AVX3_DL
#include "plugins/rnn/simd/bytes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/bytes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/gemm/bytes-inl.h"
#include "plugins/math/simd/vector-inl.h"
#include "plugins/rnn/simd/lstm_cell-inl.h"
#include "plugins/rnn/simd/words-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;
namespace mm = math::HWY_NAMESPACE;

static_assert(mm::kByteLanes == kFloatLanes);

template <class Dot>
void Multiply(const ByteTask& task, int32_t* out, size_t out_stride, size_t begin, size_t end) {
  const auto store = [&](size_t row, size_t first, size_t outputs, const int32_t* sums) HWY_ATTR {
    for (size_t i = 0; i < outputs; i += mm::kByteLanes)
      hn::StoreU(hn::Load(mm::byte_sums, sums + i), mm::byte_sums, out + row * out_stride + first + i);
  };
  mm::MultiplyBytes<Dot>(task, begin, end, mm::ByRow(store));
}

template <class Dot>
void MultiplyScaled(const ScaledTask& task, size_t begin, size_t end) {
  const auto finish = [&](size_t row, size_t first, size_t outputs, const int32_t* sums) HWY_ATTR {
    const FloatVector row_scale = hn::Set(fd, task.row_scales[row]);
    const float* const start = task.start ? task.start + row * task.start_stride + first : nullptr;
    float* const out = task.out + row * task.out_stride + first;
    const auto scaled = [&](size_t i, FloatVector addend) HWY_ATTR {
      const FloatVector scale = hn::Mul(hn::LoadU(fd, task.output_scales + first + i), row_scale);
      return hn::MulAdd(hn::ConvertTo(fd, hn::Load(mm::byte_sums, sums + i)), scale, addend);
    };
    const size_t left = task.product.layout.n - first;
    if (HWY_LIKELY(start && left >= outputs)) {
#pragma GCC unroll 4
      for (size_t i = 0; i < outputs; i += mm::kByteLanes)
        hn::StoreU(scaled(i, hn::LoadU(fd, start + i)), fd, out + i);
      return;
    }
    for (size_t i = 0; i < outputs; i += mm::kByteLanes)
      StoreSome(scaled(i, start ? LoadSome(start + i, left - i) : hn::Zero(fd)), out + i, left - i);
  };
  mm::MultiplyBytes<Dot>(task.product, begin, end, mm::ByRow(finish));
}

// The cells of a row and block from the sums of the product.
HWY_INLINE void FinishStep(const HybridStepTask& task, size_t row, size_t block,
                           const mm::ByteSum (&sums)[kGates]) {
  const size_t cell = block * kFloatLanes;
  const size_t first = cell * kGates;
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

template <class Dot, int kRows>
HWY_INLINE void StepTile(const HybridStepTask& task, size_t row, size_t block) {
  const ByteTask& product = task.product;
  const uint8_t* rows[kRows];
  mm::ByteSums<kRows, kGates> sums;
  const size_t first = block * kGates * kFloatLanes;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    rows[r] = static_cast<const uint8_t*>(product.rows) + (row + r) * product.stride;
    mm::ByteStart(product, row + r, first, sums[r]);
  }
  mm::AddByteProducts<Dot, kRows, kGates>(rows, product.layout.k, mm::FlipOf<Dot>(product),
                                          mm::GroupOf(product, block), sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) FinishStep(task, row + r, block, sums[r]);
}

#if FUSEBOX_BYTE_MATRIX
// The sums of some blocks, then their cells, whose constants stay in registers.
void StepUnits(const HybridStepTask& task, size_t begin, size_t end) {
  constexpr size_t kBlocks = 8;
  constexpr size_t kWidth = kGates * kFloatLanes;
  HWY_ALIGN int32_t stored[kBlocks * mm::kMatrixRows * kWidth];
  for (size_t row = 0; row < task.product.count; row += mm::kMatrixRows) {
    const size_t count = std::min<size_t>(mm::kMatrixRows, task.product.count - row);
    for (size_t block = begin; block < end; ++block)
      mm::StoreUnitSums<kGates>(task.product, row, count, block,
                                stored + (block - begin) * mm::kMatrixRows * kWidth);
    for (size_t r = 0; r < count; ++r) {
#pragma GCC unroll 1
      for (size_t block = begin; block < end; ++block) {
        const int32_t* const from = stored + ((block - begin) * mm::kMatrixRows + r) * kWidth;
        mm::ByteSum sums[kGates];
#pragma GCC unroll 4
        for (size_t gate = 0; gate < kGates; ++gate)
          sums[gate] = hn::Load(mm::byte_sums, from + gate * kFloatLanes);
        FinishStep(task, row + r, block, sums);
      }
    }
  }
}

void LstmStepOfUnits(const HybridStepTask& task, size_t begin, size_t end) {
  constexpr size_t kBlocks = 8;
  for (size_t i = begin; i < end; i += kBlocks) {
    const size_t count = std::min(kBlocks, end - i);
    const size_t first = task.reverse ? begin + end - i - count : i;
    StepUnits(task, first, first + count);
  }
}
#endif

template <class Dot>
void LstmStep(const HybridStepTask& task, size_t begin, size_t end) {
#if FUSEBOX_BYTE_MATRIX
  if constexpr (Dot::kUnit == 8) return LstmStepOfUnits(task, begin, end);
#endif
  constexpr int kRows = std::min(4, Dot::kRows);
  for (size_t i = begin; i < end; ++i) {
    const size_t block = task.reverse ? end - 1 - (i - begin) : i;
    size_t row = 0;
    for (; row + kRows <= task.product.count; row += kRows) StepTile<Dot, kRows>(task, row, block);
    for (; row < task.product.count; ++row) StepTile<Dot, 1>(task, row, block);
  }
}

template <class Dot>
constexpr ByteKernels kCode{kFloatLanes,
                            Dot::kUnit,
                            {Dot::kUnsignedRows},
                            Multiply<Dot>,
                            MultiplyScaled<Dot>,
                            LstmStep<Dot>,
                            MultiplyWords<Dot>,
                            Sigmoids,
                            Tanhs,
                            AddPeephole,
                            SumWords,
                            Normalize,
                            UpdateCells,
                            Blend,
                            ScaleProducts,
                            NarrowWords};

const ByteKernels& KernelsOfBytes() { return kCode<mm::ByteDot>; }
#if FUSEBOX_BYTE_EXTENSION
const ByteKernels& KernelsOfBytesExtended() { return kCode<mm::ExtendedByteDot>; }
#endif

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

std::vector<const ByteKernels*> AllByteKernels() { return FUSEBOX_SIMD_TABLES(ByteKernels, KernelsOfBytes); }

}  // namespace fusebox::rnn
#endif
