// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/simd/lstm.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/lstm.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/costs.h"
#include "plugins/math/gemm/tile-inl.h"
#include "plugins/math/simd/vector-inl.h"
#include "plugins/rnn/simd/lstm_cell-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

constexpr size_t kBlock = kGates * kFloatLanes;  // floats of one block at one column

template <int kRows, int kPanels>
using Sums = FloatVector[kRows][kPanels][kGates];

// Blocks are packed in pairs, column by column, so that a single row reads one stream. The last of an odd
// number is not paired.
size_t ColumnStride(size_t block, size_t blocks) {
  return block % 2 == 0 && block + 1 == blocks ? kBlock : 2 * kBlock;
}

template <class Task>
HWY_INLINE const float* WeightsOf(const Task& task, size_t block, size_t columns) {
  return task.weights + block / 2 * 2 * columns * kBlock + block % 2 * kBlock;
}

// Adds the products of one column, which x(row) returns in every lane.
template <int kRows, int kPanels, class X>
HWY_INLINE void AddColumn(Sums<kRows, kPanels>& sums, const float* HWY_RESTRICT weights, const X& x) {
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    FloatVector weight[kGates];
#pragma GCC unroll 4
    for (size_t gate = 0; gate < kGates; ++gate)
      weight[gate] = hn::LoadU(fd, weights + p * kBlock + gate * kFloatLanes);
#pragma GCC unroll 4
    for (size_t gate = 0; gate < kGates; ++gate) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][p][gate] = hn::MulAdd(weight[gate], x(r), sums[r][p][gate]);
    }
  }
}

// Four columns at once: NEON multiplies by a lane, so that four elements of a row take one load.
template <int kRows, int kPanels>
HWY_INLINE void AddFourColumns(Sums<kRows, kPanels>& sums, const float* const (&x)[kRows], size_t k,
                               const float* HWY_RESTRICT weights, size_t column_stride) {
  FloatVector four[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) four[r] = hn::LoadU(fd, x[r] + k);
  AddColumn<kRows, kPanels>(sums, weights, [&](int r) HWY_ATTR { return hn::Broadcast<0>(four[r]); });
  weights += column_stride;
  AddColumn<kRows, kPanels>(sums, weights, [&](int r) HWY_ATTR { return hn::Broadcast<1>(four[r]); });
  weights += column_stride;
  AddColumn<kRows, kPanels>(sums, weights, [&](int r) HWY_ATTR { return hn::Broadcast<2>(four[r]); });
  weights += column_stride;
  AddColumn<kRows, kPanels>(sums, weights, [&](int r) HWY_ATTR { return hn::Broadcast<3>(four[r]); });
}

// Adds the products of `columns` columns.
template <int kRows, int kPanels>
HWY_INLINE void AddProducts(Sums<kRows, kPanels>& sums, const float* const (&x)[kRows], size_t columns,
                            const float* HWY_RESTRICT weights, size_t column_stride) {
  size_t k = 0;
  if constexpr (kNeon) {
    for (; k + 4 <= columns; k += 4)
      AddFourColumns<kRows, kPanels>(sums, x, k, weights + k * column_stride, column_stride);
  }
  for (; k < columns; ++k) {
    AddColumn<kRows, kPanels>(sums, weights + k * column_stride,
                              [&](int r) HWY_ATTR { return hn::Set(fd, x[r][k]); });
  }
}

template <int kRows, int kPanels>
HWY_INLINE void LoadSums(Sums<kRows, kPanels>& sums, const float* const (&from)[kRows]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate) {
        sums[r][p][gate] = hn::LoadU(fd, from[r] + p * kBlock + gate * kFloatLanes);
      }
    }
  }
}

template <int kRows, int kPanels>
HWY_INLINE void StepTile(const StepTask& task, size_t row, size_t block) {
  const float* z[kRows];
  const float* h[kRows];
  for (int r = 0; r < kRows; ++r) {
    z[r] = task.z + ((row + r) * task.blocks + block) * kBlock;
    h[r] = task.h_before + (row + r) * task.h_before_stride;
  }
  Sums<kRows, kPanels> sums;
  LoadSums<kRows, kPanels>(sums, z);
  AddProducts<kRows, kPanels>(sums, h, task.cells, WeightsOf(task, block, task.cells),
                              ColumnStride(block, task.blocks));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const size_t cell = (block + p) * kFloatLanes;
      FinishBlock(task, sums[r][p], task.c + (row + r) * task.cells + cell,
                  task.h_after + (row + r) * task.h_after_stride + cell, task.cells - cell);
    }
  }
}

// Calls tile(integral constant R, first row) until all rows are done.
template <int kRows = kMaxTileRows, class Tile>
HWY_INLINE void ForRowTiles(size_t rows, const Tile& tile, size_t row = 0) {
  for (; rows - row >= kRows; row += kRows) tile(std::integral_constant<int, kRows>(), row);
  if constexpr (kRows > 1) {
    if (row < rows) ForRowTiles<kRows - 1>(rows, tile, row);
  }
}

// Another core has written part of the state: its lines are moved at once, not one after the other.
HWY_INLINE void FetchState(const StepTask& task) {
  for (size_t cell = 0; cell < task.cells; cell += 64 / sizeof(float)) hwy::Prefetch(task.h_before + cell);
}

// A single row takes a pair of blocks at once: eight independent sums keep the multipliers busy.
void Step(const StepTask& task, size_t begin, size_t end) {
  if (begin > 0 || end < task.blocks) FetchState(task);
  const size_t pairs = (end - begin + 1) / 2;
  for (size_t i = 0; i < pairs; ++i) {
    const size_t block = begin + 2 * (task.reverse ? pairs - 1 - i : i);
    if (task.batch == 1 && block + 2 <= end) {
      StepTile<1, 2>(task, 0, block);
      continue;
    }
    for (size_t b = block; b < std::min(block + 2, end); ++b) {
      ForRowTiles(task.batch, [&](auto rows, size_t row) HWY_ATTR { StepTile<rows.value, 1>(task, row, b); });
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
    z[r] = task.z + ((row + r) * task.blocks + block) * kBlock;
    from[r] = column == 0 ? task.bias + block * kBlock : z[r];
    x[r] = task.in.at(row + r) + column;
  }
  const size_t column_stride = ColumnStride(block, task.blocks);
  Sums<kRows, kPanels> sums;
  LoadSums<kRows, kPanels>(sums, from);
  AddProducts<kRows, kPanels>(
      sums, x, columns, WeightsOf(task, block, task.in.columns) + column * column_stride, column_stride);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (size_t gate = 0; gate < kGates; ++gate)
        hn::StoreU(sums[r][p][gate], fd, z[r] + p * kBlock + gate * kFloatLanes);
    }
  }
}

void Project(const ProjectionTask& task, size_t begin, size_t end) {
  constexpr size_t kColumns =
      math::kWeightsBytes / (kGates * math::kMaxLanes * sizeof(float));  // for all rows
  const size_t rows = task.in.count();
  for (size_t block = begin; block < end; block += 2) {
    size_t column = 0;
    do {
      const size_t columns = std::min(kColumns, task.in.columns - column);
      if (rows == 1 && block + 2 <= end) {
        ProjectTile<1, 2>(task, 0, block, column, columns);
      } else {
        for (size_t b = block; b < std::min(block + 2, end); ++b) {
          ForRowTiles(rows, [&](auto r, size_t row)
                                HWY_ATTR { ProjectTile<r.value, 1>(task, row, b, column, columns); });
        }
      }
      column += columns;
    } while (column < task.in.columns);
  }
}

// 16 bytes of every fourth row, as many as fill a vector.
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
  const auto a = LoadEveryFourth(tag, rows, row_stride);
  const auto b = LoadEveryFourth(tag, rows + row_stride, row_stride);
  const auto c = LoadEveryFourth(tag, rows + 2 * row_stride, row_stride);
  const auto e = LoadEveryFourth(tag, rows + 3 * row_stride, row_stride);
  const auto ab01 = hn::BitCast(pairs, hn::InterleaveLower(tag, a, b));
  const auto ab23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, a, b));
  const auto ce01 = hn::BitCast(pairs, hn::InterleaveLower(tag, c, e));
  const auto ce23 = hn::BitCast(pairs, hn::InterleaveUpper(tag, c, e));
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

// All columns, at least four, of a vector of cells. The last four columns may overlap those before.
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
  for (; cell + kFloatLanes <= task.cells; cell += kFloatLanes) PackCells(fd, task, cell);
  for (; cell + 4 <= task.cells; cell += 4) PackCells(hn::FixedTag<float, 4>(), task, cell);
  PackScalar(task, cell, task.cells);
}

const VectorCode& Code() {
  static constexpr VectorCode code{kFloatLanes, Pack, Project, Step};
  return code;
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

std::vector<const VectorCode*> VectorCodes() { return FUSEBOX_SIMD_TABLES(VectorCode, Code); }

}  // namespace fusebox::rnn
#endif
