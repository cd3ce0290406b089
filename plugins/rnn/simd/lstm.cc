// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/simd/lstm.h"

#include <algorithm>
#include <type_traits>

// Arrays of vectors need a size that is known at compile time; the targets left out differ in integer ops
// only.
#define HWY_DISABLED_TARGETS                                                                   \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/lstm.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/rnn/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, kMaxLanes>;
using V = hn::Vec<D>;
constexpr D d{};
constexpr size_t kLanes = HWY_MAX_LANES_D(D);
constexpr size_t kBlock = kGates * kLanes;  // floats of one block at one column
// Rows that share each load of a weight: as many as the registers hold sums of.
constexpr int kMaxRows = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 6 : 3;

template <int kRows, int kPanels>
struct Sums {
  V of[kRows][kPanels][kGates];
};

// Blocks are packed in pairs, column by column: a single row then reads one stream. The last of an odd number
// is alone.
size_t ColumnStride(size_t block, size_t blocks) {
  return block % 2 == 0 && block + 1 == blocks ? kBlock : 2 * kBlock;
}

template <class Task>
HWY_INLINE const float* WeightsOf(const Task& task, size_t block, size_t columns) {
  return task.weights + block / 2 * 2 * columns * kBlock + block % 2 * kBlock;
}

// Adds the products of `columns` columns.
template <int kRows, int kPanels>
HWY_INLINE void AddProducts(Sums<kRows, kPanels>& sums, const float* const (&x)[kRows], size_t columns,
                            const float* HWY_RESTRICT weights, size_t column_stride) {
  for (size_t k = 0; k < columns; ++k) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const float* w = weights + k * column_stride + p * kBlock;
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate) {
        const V weight = hn::LoadU(d, w + gate * kLanes);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r)
          sums.of[r][p][gate] = hn::MulAdd(weight, hn::Set(d, x[r][k]), sums.of[r][p][gate]);
      }
    }
  }
}

template <int kRows, int kPanels>
HWY_INLINE Sums<kRows, kPanels> LoadSums(const float* const (&from)[kRows]) {
  Sums<kRows, kPanels> sums;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate) {
        sums.of[r][p][gate] = hn::LoadU(d, from[r] + p * kBlock + gate * kLanes);
      }
    }
  }
  return sums;
}

HWY_INLINE V LoadCells(const float* from, size_t count) {
  return HWY_LIKELY(count >= kLanes) ? hn::LoadU(d, from) : hn::LoadN(d, from, count);
}

HWY_INLINE void StoreCells(V v, float* to, size_t count) {
  if (HWY_LIKELY(count >= kLanes)) {
    hn::StoreU(v, d, to);
  } else {
    hn::StoreN(v, d, to, count);
  }
}

HWY_INLINE V ClipCell(const StepTask& task, V cell) {
  if (task.cell_clip > 0) return Clamp(d, cell, hn::Set(d, -task.cell_clip), hn::Set(d, task.cell_clip));
  return cell;
}

// FinishBlock for activations that are not Keras' defaults: apart, so that the vectors of the others stay in
// registers.
HWY_NOINLINE void FinishOtherBlock(const StepTask& task, const V* sums, float* c, float* h, size_t count) {
  const auto gate = [&](Gate k) { return Activated(d, sums[k], task.gate_activation); };
  const V in = hn::Mul(gate(kInGate), Activated(d, sums[kCellGate], task.activation));
  const V cell = ClipCell(task, hn::MulAdd(gate(kForgetGate), LoadCells(c, count), in));
  StoreCells(cell, c, count);
  StoreCells(hn::Mul(gate(kOutGate), Activated(d, cell, task.activation)), h, count);
}

// Gates, cell and output of `count` cells.
HWY_INLINE void FinishBlock(const StepTask& task, const V (&sums)[kGates], float* c, float* h, size_t count) {
  if (HWY_UNLIKELY(task.activation != CellActivation::kTanh ||
                   task.gate_activation != CellActivation::kSigmoid)) {
    const V copies[kGates] = {sums[0], sums[1], sums[2], sums[3]};
    return FinishOtherBlock(task, copies, c, h, count);
  }
  const V in = GatedTanh(d, sums[kInGate], sums[kCellGate]);
  const V cell = ClipCell(task, hn::MulAdd(Sigmoid(d, sums[kForgetGate]), LoadCells(c, count), in));
  StoreCells(cell, c, count);
  StoreCells(GatedTanh(d, sums[kOutGate], cell), h, count);
}

template <int kRows, int kPanels>
HWY_INLINE void StepTile(const StepTask& task, size_t row, size_t block) {
  const float* z[kRows];
  const float* h[kRows];
  for (int r = 0; r < kRows; ++r) {
    z[r] = task.z + ((row + r) * task.blocks + block) * kBlock;
    h[r] = task.h_before + (row + r) * task.h_before_stride;
  }
  auto sums = LoadSums<kRows, kPanels>(z);
  AddProducts<kRows, kPanels>(sums, h, task.cells, WeightsOf(task, block, task.cells),
                              ColumnStride(block, task.blocks));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const size_t cell = (block + p) * kLanes;
      FinishBlock(task, sums.of[r][p], task.c + (row + r) * task.cells + cell,
                  task.h_after + (row + r) * task.h_after_stride + cell, task.cells - cell);
    }
  }
}

// Calls tile(integral constant R, first row) until all rows are done.
template <int kRows = kMaxRows, class Tile>
HWY_INLINE void ForRowTiles(size_t rows, const Tile& tile, size_t row = 0) {
  for (; rows - row >= kRows; row += kRows) tile(std::integral_constant<int, kRows>(), row);
  if constexpr (kRows > 1) {
    if (row < rows) ForRowTiles<kRows - 1>(rows, tile, row);
  }
}

// A single row takes a pair of blocks at once: eight independent sums keep the multipliers busy.
void Step(const StepTask& task, size_t begin, size_t end) {
  const size_t pairs = (end - begin + 1) / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const size_t block = begin + 2 * (task.backwards ? pairs - 1 - i : i);
    if (task.batch == 1 && block + 2 <= end) {
      StepTile<1, 2>(task, 0, block);
      continue;
    }
    for (size_t b = block; b < std::min(block + 2, end); ++b) {
      ForRowTiles(task.batch, [&](auto rows, size_t row) { StepTile<rows.value, 1>(task, row, b); });
    }
  }
}

template <int kRows, int kPanels>
HWY_INLINE void ProjectTile(const ProjectionTask& task, size_t row, size_t block, size_t column,
                            size_t columns) {
  const float* from[kRows];
  float* z[kRows];
  const float* x[kRows];
  for (int r = 0; r < kRows; ++r) {
    const size_t step = (row + r) / task.batch, at = (row + r) % task.batch;
    z[r] = task.z + ((row + r) * task.blocks + block) * kBlock;
    from[r] = column == 0 ? task.bias + block * kBlock : z[r];
    x[r] = task.x + step * task.step_stride + at * task.row_stride + column;
  }
  const size_t column_stride = ColumnStride(block, task.blocks);
  auto sums = LoadSums<kRows, kPanels>(from);
  AddProducts<kRows, kPanels>(sums, x, columns, WeightsOf(task, block, task.inputs) + column * column_stride,
                              column_stride);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate)
        hn::StoreU(sums.of[r][p][gate], d, z[r] + p * kBlock + gate * kLanes);
    }
  }
}

void Project(const ProjectionTask& task, size_t begin, size_t end) {
  // a block of so many stays in the second-level cache while all rows pass over it
  constexpr size_t kColumns = 1024;
  const size_t rows = task.steps * task.batch;
  for (size_t block = begin; block < end; block += 2) {
    size_t column = 0;
    do {
      const size_t columns = std::min(kColumns, task.inputs - column);
      if (rows == 1 && block + 2 <= end) {
        ProjectTile<1, 2>(task, 0, block, column, columns);
      } else {
        for (size_t b = block; b < std::min(block + 2, end); ++b) {
          ForRowTiles(rows,
                      [&](auto r, size_t row) { ProjectTile<r.value, 1>(task, row, b, column, columns); });
        }
      }
      column += columns;
    } while (column < task.inputs);
  }
}

// 16 bytes of every fourth row, as many as make a vector.
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadEveryFourth(Tag tag, const float* rows, size_t row_stride) {
  constexpr size_t kCells = HWY_MAX_LANES_D(Tag);
  if constexpr (kCells == 4) {
    return hn::LoadU(tag, rows);
  } else {
    const hn::Half<Tag> half;
    return hn::Combine(tag, LoadEveryFourth(half, rows + kCells / 2 * row_stride, row_stride),
                       LoadEveryFourth(half, rows, row_stride));
  }
}

// Four columns of as many cells as a vector holds, turned in registers.
template <class Tag>
HWY_INLINE void TransposeFour(Tag tag, const float* rows, size_t row_stride, float* to,
                              size_t column_stride) {
  const hn::Repartition<uint64_t, Tag> pairs;
  const auto a = LoadEveryFourth(tag, rows, row_stride),
             b = LoadEveryFourth(tag, rows + row_stride, row_stride),
             c = LoadEveryFourth(tag, rows + 2 * row_stride, row_stride),
             e = LoadEveryFourth(tag, rows + 3 * row_stride, row_stride);
  const auto ab01 = hn::BitCast(pairs, hn::InterleaveLower(tag, a, b)),
             ab23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, a, b)),
             ce01 = hn::BitCast(pairs, hn::InterleaveLower(tag, c, e)),
             ce23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, c, e));
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, ab01, ce01)), tag, to);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, ab01, ce01)), tag, to + column_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(pairs, ab23, ce23)), tag, to + 2 * column_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(pairs, ab23, ce23)), tag, to + 3 * column_stride);
}

void PackScalar(const PackTask& task, size_t first_cell, size_t end_cell) {
  for (size_t k = 0; k < task.columns; ++k) {
    for (size_t cell = first_cell; cell < end_cell; ++cell)
      task.to[k * task.column_stride + cell] = task.rows[cell * task.columns + k];
  }
}

// All columns, at least four, of a vector's cells from `cell` on. The last four may begin among those that
// are done.
template <class Tag>
HWY_INLINE void PackCells(Tag tag, const PackTask& task, size_t cell) {
  for (size_t k = 0; k < task.columns; k += 4) {
    const size_t column = std::min(k, task.columns - 4);
    TransposeFour(tag, task.rows + cell * task.columns + column, task.columns,
                  task.to + column * task.column_stride + cell, task.column_stride);
  }
}

void Pack(const PackTask& task) {
  if (task.columns < 4) return PackScalar(task, 0, task.cells);
  size_t cell = 0;
  for (; cell + kLanes <= task.cells; cell += kLanes) PackCells(d, task, cell);
  for (; cell + 4 <= task.cells; cell += 4) PackCells(hn::FixedTag<float, 4>(), task, cell);
  PackScalar(task, cell, task.cells);
}

const VectorCode& Code() {
  static constexpr VectorCode code{kLanes, Pack, Project, Step};
  return code;
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

// Highway's shared library times the clock for 2.5 ms when it is loaded, which every load of this plugin
// would pay; the compiler's own question to the CPU is enough to choose among the targets compiled here.
std::vector<const VectorCode*> VectorCodes() {
  std::vector<const VectorCode*> out;
#if HWY_TARGETS & HWY_AVX3
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2")) {
    out.push_back(&N_AVX3::Code());
  }
#endif
#if HWY_TARGETS & HWY_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    out.push_back(&N_AVX2::Code());
  }
#endif
#if HWY_TARGETS & HWY_SSE4
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes")) {
    out.push_back(&N_SSE4::Code());
  }
#endif
  out.push_back(&HWY_STATIC_DISPATCH(Code)());
  return out;
}

namespace {
const VectorCode* code_for_test = nullptr;
}

const VectorCode& BestVectorCode() {
  static const VectorCode* const best = VectorCodes().front();
  return code_for_test ? *code_for_test : *best;
}

void UseVectorCodeForTest(const VectorCode* code) { code_for_test = code; }

}  // namespace fusebox::rnn
#endif
