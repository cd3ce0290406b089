// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit rows with packed weights (byte_product.h). Compiled once per target; a file that includes
// this defines HWY_WANT_AVX3_DL before simd_targets.h.
#if defined(FUSEBOX_MATH_BYTE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_MATH_BYTE_PRODUCT_INL_H_
#undef FUSEBOX_MATH_BYTE_PRODUCT_INL_H_
#else
#define FUSEBOX_MATH_BYTE_PRODUCT_INL_H_
#endif

#include <hwy/highway.h>

#include "plugins/math/gemm/bytes.h"
#include "plugins/math/gemm/bytes_dot-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::math::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Dot>
HWY_INLINE auto FlipOf(const ByteTask& task) {
  if constexpr (Dot::kFlips) return hn::Set(byte_sums, task.flipped ? static_cast<int32_t>(0x80808080) : 0);
  else return NoFlip{};
}

// Up to four bytes in every lane; those beyond `count` are zeros before they are flipped.
template <bool kAllFour, class Flip>
HWY_INLINE ByteSum FourBytes(const uint8_t* from, size_t count, Flip flip) {
  int32_t four = 0;
  std::memcpy(&four, from, kAllFour ? 4 : count);
  return Flipped(hn::Set(byte_sums, four), flip);
}

template <int kRows, int kPanels>
using ByteSums = ByteSum[kRows][kPanels];

// Adds the products of up to four columns.
template <class Dot, int kRows, int kPanels, bool kAllFour = true, class Flip>
HWY_INLINE void AddFourColumns(const uint8_t* const (&rows)[kRows], size_t k, size_t count, Flip flip,
                               const int8_t* HWY_RESTRICT weights, ByteSums<kRows, kPanels>& sums) {
  constexpr hn::Repartition<int8_t, ByteSumTag> bytes{};
  typename Dot::RowBytes x[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) x[r] = Dot::Row(FourBytes<kAllFour>(rows[r] + k, count, flip));
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    const auto w = Dot::Weights(hn::BitCast(byte_sums, hn::LoadU(bytes, weights + p * 4 * kByteLanes)));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = Dot::Add(sums[r][p], x[r], w);
  }
}

// Adds the products of columns 4 * kLane to 4 * kLane + 3 of sixteen, which `x` has.
template <class Dot, int kLane, int kRows, int kPanels>
HWY_INLINE void AddLaneOfColumns(const typename Dot::RowBytes (&x)[kRows],
                                 const int8_t* HWY_RESTRICT& weights, ByteSums<kRows, kPanels>& sums) {
  typename Dot::WeightBytes w[kPanels];
  LoadNext(weights, w);
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][p] = Dot::template AddLane<kLane>(sums[r][p], x[r], w[p]);
  }
}

// Adds the products of columns from k on, sixteen at a time, with one load for each row. Every other four
// columns are added to `others`, which may be `sums`. Returns the column after them.
template <class Dot, int kRows, int kPanels, class Flip>
HWY_INLINE size_t AddSixteens(const uint8_t* const (&rows)[kRows], size_t columns, Flip flip,
                              const int8_t* HWY_RESTRICT weights, ByteSums<kRows, kPanels>& sums,
                              ByteSums<kRows, kPanels>& others) {
  constexpr hn::Repartition<uint8_t, ByteSumTag> bytes{};
  const uint8_t* at[kRows];
  std::copy_n(rows, kRows, at);
  for (size_t i = columns / 16; i > 0; --i) {
    typename Dot::RowBytes x[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r, at[r - 1] += 16)
      x[r] = Dot::Row(Flipped(hn::BitCast(byte_sums, hn::LoadU(bytes, at[r])), flip));
    AddLaneOfColumns<Dot, 0, kRows, kPanels>(x, weights, sums);
    AddLaneOfColumns<Dot, 1, kRows, kPanels>(x, weights, others);
    AddLaneOfColumns<Dot, 2, kRows, kPanels>(x, weights, sums);
    AddLaneOfColumns<Dot, 3, kRows, kPanels>(x, weights, others);
  }
  return columns / 16 * 16;
}

// Adds the products of some rows with a group of panels, which starts at `weights`.
template <class Dot, int kRows, int kPanels, class Flip>
HWY_INLINE void AddByteProducts(const uint8_t* const (&rows)[kRows], size_t columns, Flip flip,
                                const int8_t* HWY_RESTRICT weights, ByteSums<kRows, kPanels>& sums) {
  constexpr size_t kWidth = kPanels * kByteLanes;  // bytes of a column
  size_t k = 0;
  if constexpr (kRows * kPanels < Dot::kChains) {
    ByteSums<kRows, kPanels> others;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) others[r][p] = hn::Zero(byte_sums);
    }
    if constexpr (Dot::kByLane)
      k = AddSixteens<Dot, kRows, kPanels>(rows, columns, flip, weights, sums, others);
    for (; k + 8 <= columns; k += 8) {
      AddFourColumns<Dot, kRows, kPanels>(rows, k, 4, flip, weights + k * kWidth, sums);
      AddFourColumns<Dot, kRows, kPanels>(rows, k + 4, 4, flip, weights + (k + 4) * kWidth, others);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sums[r][p] = hn::Add(sums[r][p], others[r][p]);
    }
  } else if constexpr (Dot::kByLane) {
    k = AddSixteens<Dot, kRows, kPanels>(rows, columns, flip, weights, sums, sums);
  }
  for (; k + 4 <= columns; k += 4)
    AddFourColumns<Dot, kRows, kPanels>(rows, k, 4, flip, weights + k * kWidth, sums);
  if (k < columns)
    AddFourColumns<Dot, kRows, kPanels, false>(rows, k, columns - k, flip, weights + k * kWidth, sums);
}

// One row reads all weights once, from memory if there are many: what the CPU prefetches by itself is not
// enough. This many bytes are on their way.
constexpr size_t kByteAhead = 8192;

// The same for a group of panels of 4-bit weights. One row has two sums for each output, to hide the latency.
template <class Dot, int kRows, class Flip>
HWY_INLINE void AddInt4Products(const uint8_t* const (&rows)[kRows], size_t columns, Flip flip,
                                const int8_t* HWY_RESTRICT weights, ByteSums<kRows, kBytePanels>& sums) {
  constexpr hn::Repartition<uint8_t, ByteSumTag> bytes{};
  constexpr hn::Repartition<uint16_t, ByteSumTag> words{};
  const auto lower = hn::Set(bytes, 0x0F);
  ByteSums<1, kBytePanels> others;
#pragma GCC unroll 4
  for (ByteSum& other : others[0]) other = hn::Zero(byte_sums);
  const auto add = [&]<bool kAllEight>(size_t k) HWY_ATTR {
    const size_t left = columns - k;
#pragma GCC unroll 4
    for (size_t p = 0; p < kBytePanels; ++p) __builtin_prefetch(weights + kByteAhead + p * 4 * kByteLanes);
    typename Dot::RowBytes x[kRows], y[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      x[r] = Dot::Row(FourBytes<kAllEight>(rows[r] + k, std::min<size_t>(4, left), flip));
      y[r] = Dot::Row(FourBytes<kAllEight>(rows[r] + k + 4, left - std::min<size_t>(4, left), flip));
    }
#pragma GCC unroll 4
    for (size_t p = 0; p < kBytePanels; ++p) {
      const auto both = hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(weights) + p * 4 * kByteLanes);
      const auto upper = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(words, both)));
      const auto v = Dot::Weights(hn::BitCast(byte_sums, hn::And(both, lower)));
      const auto w = Dot::Weights(hn::BitCast(byte_sums, hn::And(upper, lower)));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        ByteSum& other = kRows == 1 ? others[0][p] : sums[r][p];
        sums[r][p] = Dot::Add(sums[r][p], x[r], v);
        other = Dot::Add(other, y[r], w);
      }
    }
    weights += 4 * kBytePanels * kByteLanes;
  };
  size_t k = 0;
  for (; k + 8 <= columns; k += 8) add.template operator()<true>(k);
  if (k < columns) add.template operator()<false>(k);
#pragma GCC unroll 4
  for (size_t p = 0; p < kBytePanels; ++p) sums[0][p] = hn::Add(sums[0][p], others[0][p]);
}

// Returns the starts of the sums of a row and some panels, from an output on.
template <int kPanels>
HWY_INLINE void ByteStart(const ByteTask& task, size_t row, size_t output, ByteSum (&sums)[kPanels]) {
#pragma GCC unroll 4
  for (ByteSum& sum : sums) sum = hn::Zero(byte_sums);
  if (task.start) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[p] = hn::LoadU(byte_sums, task.start + output + p * kByteLanes);
  }
#pragma GCC unroll 2
  for (const ByteTerm& term : task.terms) {
    if (!term.of_row) continue;
    const ByteSum by = hn::Set(byte_sums, term.of_row[row]);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const ByteSum addend = hn::LoadU(byte_sums, term.of_output + output + p * kByteLanes);
      sums[p] = hn::Add(sums[p], hn::Mul(addend, by));
    }
  }
}

HWY_INLINE const int8_t* GroupOf(const ByteTask& task, size_t group) {
  return task.weights + group * task.layout.group_bytes();
}

// Stores the sums of some rows from `row` on with a group of panels: [row][panel][lane]. They go through
// memory, so that the loop over columns has nothing but them in registers, and its code is there once,
// whatever becomes of the sums.
template <class Dot, int kRows, int kPanels, bool kInt4 = false>
HWY_NOINLINE void StoreByteSums(const ByteTask& task, size_t row, size_t group, int32_t* stored) {
  const uint8_t* rows[kRows];
  ByteSums<kRows, kPanels> sums;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    rows[r] = static_cast<const uint8_t*>(task.rows) + (row + r) * task.stride;
    ByteStart(task, row + r, group * kBytePanels * kByteLanes, sums[r]);
  }
  if constexpr (kInt4)
    AddInt4Products<Dot, kRows>(rows, task.layout.k, FlipOf<Dot>(task), GroupOf(task, group), sums);
  else
    AddByteProducts<Dot, kRows, kPanels>(rows, task.layout.k, FlipOf<Dot>(task), GroupOf(task, group), sums);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p)
      hn::Store(sums[r][p], byte_sums, stored + (r * kPanels + p) * kByteLanes);
  }
}

template <class Dot, int kRows, int kPanels, bool kInt4 = false, class Finish>
HWY_INLINE void ByteTile(const ByteTask& task, size_t row, size_t group, const Finish& finish) {
  constexpr size_t kWidth = kPanels * kByteLanes;
  HWY_ALIGN int32_t stored[kRows * kWidth];
  StoreByteSums<Dot, kRows, kPanels, kInt4>(task, row, group, stored);
  finish(row, kRows, group * kBytePanels * kByteLanes, kWidth, stored);
}

#if FUSEBOX_BYTE_MATRIX
// Sums of one to four rows from `row` on with a group of panels, of weights in units of eight columns.
template <int kPanels>
HWY_INLINE void StoreUnitSums(const ByteTask& task, size_t row, size_t count, size_t group, int32_t* stored) {
  const uint8_t* rows[kMatrixRows];
  const auto start = [&](size_t r) HWY_ATTR {  // the last row takes the place of absent ones
    const size_t at = row + std::min(r, count - 1);
    rows[r] = static_cast<const uint8_t*>(task.rows) + at * task.stride;
    ByteSum sums[kPanels];
    ByteStart(task, at, group * kBytePanels * kByteLanes, sums);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) hn::Store(sums[p], byte_sums, stored + (r * kPanels + p) * kByteLanes);
  };
  start(0);
  for (size_t r = 1; r < kMatrixRows && count > 1; ++r) start(r);
  AddUnits<kPanels>(rows, count, task.layout.k, task.flipped, GroupOf(task, group), stored);
}

template <int kPanels, class Finish>
HWY_INLINE void UnitRows(const ByteTask& task, size_t group, const Finish& finish) {
  constexpr size_t kWidth = kPanels * kByteLanes;
  HWY_ALIGN int32_t stored[kMatrixRows * kWidth];
  for (size_t row = 0; row < task.count; row += kMatrixRows) {
    const size_t count = std::min<size_t>(kMatrixRows, task.count - row);
    StoreUnitSums<kPanels>(task, row, count, group, stored);
    finish(row, count, group * kBytePanels * kByteLanes, kWidth, stored);
  }
}
#endif

template <class Dot, int kPanels, class Finish>
HWY_INLINE void ByteRows(const ByteTask& task, size_t group, const Finish& finish) {
#if FUSEBOX_BYTE_MATRIX
  if constexpr (Dot::kUnit == 8) return UnitRows<kPanels>(task, group, finish);
#endif
  constexpr int kRows = Dot::kRows;
  size_t row = 0;
  for (; row + kRows <= task.count; row += kRows) ByteTile<Dot, kRows, kPanels>(task, row, group, finish);
  for (; row < task.count; ++row) ByteTile<Dot, 1, kPanels>(task, row, group, finish);
}

// Makes a `finish` of f(row, first output, outputs, sums), which is called for each row.
template <class F>
HWY_INLINE auto ByRow(const F& f) {
  return [&f](size_t row, size_t rows, size_t first, size_t outputs, const int32_t* sums) HWY_ATTR {
#pragma GCC unroll 1
    for (size_t r = 0; r < rows; ++r) f(row + r, first, outputs, sums + r * outputs);
  };
}

// Calls finish(first row, rows, first output, outputs, sums) for every tile of the groups [begin, end): the
// sums are [rows][outputs].
template <class Dot, class Finish>
HWY_INLINE void MultiplyBytes(const ByteTask& task, size_t begin, size_t end, const Finish& finish) {
  for (size_t group = begin; group < end; ++group) {
    switch (std::min(kBytePanels, task.layout.panels() - group * kBytePanels)) {
      case 1: ByteRows<Dot, 1>(task, group, finish); break;
      case 2: ByteRows<Dot, 2>(task, group, finish); break;
      case 3: ByteRows<Dot, 3>(task, group, finish); break;
      default: ByteRows<Dot, 4>(task, group, finish); break;
    }
  }
}

// The same for 4-bit weights.
template <class Dot, class Finish>
HWY_INLINE void MultiplyInt4(const ByteTask& task, size_t begin, size_t end, const Finish& finish) {
  constexpr int kRows = Dot::kRows * 2 / 3;
  for (size_t group = begin; group < end; ++group) {
    size_t row = 0;
    for (; row + kRows <= task.count; row += kRows)
      ByteTile<Dot, kRows, kBytePanels, true>(task, row, group, finish);
    for (; row < task.count; ++row) ByteTile<Dot, 1, kBytePanels, true>(task, row, group, finish);
  }
}

}  // namespace fusebox::math::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
