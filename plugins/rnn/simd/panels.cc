// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/simd/panels.h"

#include <algorithm>
#include <type_traits>

#include "plugins/rnn/simd/lstm.h"

// As in lstm_simd.cc: arrays of vectors need a size that is known at compile time.
#define HWY_DISABLED_TARGETS                                                                   \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/panels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/rnn/simd/bytes-inl.h"
#include "plugins/rnn/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PanelTag = hn::CappedTag<float, kMaxLanes>;
using PanelVector = hn::Vec<PanelTag>;
constexpr PanelTag pd{};
constexpr size_t kPanelLanes = HWY_MAX_LANES_D(PanelTag);
// Rows that share each load of a weight: as many as the registers hold sums of.
constexpr int kPanelRows = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 6 : 3;

template <int kRows, int kPanels>
HWY_INLINE void MultiplyTile(const PanelTask& task, size_t row, size_t group, size_t column, size_t columns) {
  PanelVector sums[kRows][kPanels];
  const float* x[kRows];
  float* out[kRows];
  const size_t first = group * kGroupPanels * kPanelLanes;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const size_t at = row + r;
    x[r] = task.x + at / task.inner * task.outer_stride + at % task.inner * task.inner_stride + column;
    out[r] = task.out + at * task.out_stride + first;
    const float* start = task.start ? task.start + at * task.start_stride + first : nullptr;
    if (column > 0) start = out[r];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p)
      sums[r][p] = start ? hn::LoadU(pd, start + p * kPanelLanes) : hn::Zero(pd);
  }
  const float* HWY_RESTRICT weights = task.weights + first * task.columns + column * kPanels * kPanelLanes;
  for (size_t k = 0; k < columns; ++k, weights += kPanels * kPanelLanes) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const PanelVector weight = hn::LoadU(pd, weights + p * kPanelLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][p] = hn::MulAdd(weight, hn::Set(pd, x[r][k]), sums[r][p]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) hn::StoreU(sums[r][p], pd, out[r] + p * kPanelLanes);
  }
}

template <int kPanels, int kRows = kPanelRows>
HWY_INLINE void MultiplyRows(const PanelTask& task, size_t group, size_t column, size_t columns,
                             size_t row = 0) {
  for (; task.rows - row >= kRows; row += kRows)
    MultiplyTile<kRows, kPanels>(task, row, group, column, columns);
  if constexpr (kRows > 1) {
    if (row < task.rows) MultiplyRows<kPanels, kRows - 1>(task, group, column, columns, row);
  }
}

void Multiply(const PanelTask& task, size_t begin, size_t end) {
  constexpr size_t kColumns = 1024;  // a group of so many stays in the second-level cache for all rows
  for (size_t group = begin; group < end; ++group) {
    size_t column = 0;
    do {
      const size_t columns = std::min(kColumns, task.columns - column);
      switch (std::min(kGroupPanels, task.panels - group * kGroupPanels)) {
        case 1: MultiplyRows<1>(task, group, column, columns); break;
        case 2: MultiplyRows<2>(task, group, column, columns); break;
        case 3: MultiplyRows<3>(task, group, column, columns); break;
        default: MultiplyRows<4>(task, group, column, columns); break;
      }
      column += columns;
    } while (column < task.columns);
  }
}

HWY_INLINE PanelVector LoadSome(const float* from, size_t count) {
  return HWY_LIKELY(count >= kPanelLanes) ? hn::LoadU(pd, from) : hn::LoadN(pd, from, count);
}

HWY_INLINE void StoreSome(PanelVector v, float* to, size_t count) {
  if (HWY_LIKELY(count >= kPanelLanes)) {
    hn::StoreU(v, pd, to);
  } else {
    hn::StoreN(v, pd, to, count);
  }
}

// Calls f(row, first cell, cells left) for every vector of cells.
template <class F>
HWY_INLINE void ForCells(const GruTask& task, const F& f) {
  for (size_t row = 0; row < task.rows; ++row) {
    for (size_t cell = 0; cell < task.cells; cell += kPanelLanes) f(row, cell, task.cells - cell);
  }
}

// Gates 0 and 1 (z, r) of a row from both shares.
HWY_INLINE PanelVector GateOf(const GruTask& task, size_t gate, size_t row, size_t cell) {
  const size_t at = gate * task.padded + cell;
  const PanelVector sum = hn::Add(hn::LoadU(pd, task.x + row * task.x_stride + at),
                                  hn::LoadU(pd, task.h + row * task.h_stride + at));
  return Activated(pd, sum, task.gate_activation);
}

// z * before + (1 - z) * candidate.
HWY_INLINE void StoreState(const GruTask& task, size_t row, size_t cell, size_t left, PanelVector z,
                           PanelVector candidate_sum) {
  const PanelVector candidate = Activated(pd, candidate_sum, task.activation);
  const PanelVector before = LoadSome(task.before + row * task.before_stride + cell, left);
  const PanelVector kept = hn::Mul(z, before);
  const PanelVector rest = hn::Sub(hn::Set(pd, 1.0f), z);
  StoreSome(hn::MulAdd(rest, candidate, kept), task.after + row * task.after_stride + cell, left);
}

void GruAfter(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) {
    const size_t at = 2 * task.padded + cell;
    const PanelVector reset = GateOf(task, 1, row, cell);
    const PanelVector sum = hn::MulAdd(reset, hn::LoadU(pd, task.h + row * task.h_stride + at),
                                       hn::LoadU(pd, task.x + row * task.x_stride + at));
    StoreState(task, row, cell, left, GateOf(task, 0, row, cell), sum);
  });
}

void GruReset(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) {
    const PanelVector reset = GateOf(task, 1, row, cell);
    hn::StoreU(GateOf(task, 0, row, cell), pd, task.h + row * task.h_stride + cell);
    const PanelVector before = LoadSome(task.before + row * task.before_stride + cell, left);
    StoreSome(hn::Mul(reset, before), task.after + row * task.after_stride + cell, left);
  });
}

void GruBefore(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) {
    const size_t at = 2 * task.padded + cell;
    const PanelVector sum = hn::Add(hn::LoadU(pd, task.h + row * task.h_stride + at),
                                    hn::LoadU(pd, task.x + row * task.x_stride + at));
    StoreState(task, row, cell, left, hn::LoadU(pd, task.h + row * task.h_stride + cell), sum);
  });
}

void ActivateRow(CellActivation activation, size_t cells, const float* sums, float* out) {
  for (size_t cell = 0; cell < cells; cell += kPanelLanes)
    StoreSome(Activated(pd, LoadSome(sums + cell, cells - cell), activation), out + cell, cells - cell);
}

const PanelCode& PanelsCode() {
  static constexpr PanelCode code{kPanelLanes, Multiply, GruAfter, GruReset, GruBefore,
                                  ActivateRow, Dots,     Range,    Quantize};
  return code;
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

// The compiler's question to the CPU, for the reason that stands in lstm_simd.cc.
std::vector<const PanelCode*> PanelCodes() {
  std::vector<const PanelCode*> out;
#if HWY_TARGETS & HWY_AVX3
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx2")) {
    out.push_back(&N_AVX3::PanelsCode());
  }
#endif
#if HWY_TARGETS & HWY_AVX2
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) {
    out.push_back(&N_AVX2::PanelsCode());
  }
#endif
#if HWY_TARGETS & HWY_SSE4
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes")) {
    out.push_back(&N_SSE4::PanelsCode());
  }
#endif
  out.push_back(&HWY_STATIC_DISPATCH(PanelsCode)());
  return out;
}

namespace {
const PanelCode* code_for_test = nullptr;
}

const PanelCode& BestPanelCode() {
  static const PanelCode* const best = PanelCodes().front();
  return code_for_test ? *code_for_test : *best;
}

void UsePanelCodeForTest(const PanelCode* code) { code_for_test = code; }

void PackPanelRow(size_t lanes, size_t panels, size_t output, const float* row, size_t columns, float* to) {
  const size_t panel = output / lanes, group = panel / kGroupPanels;
  const size_t width = std::min(kGroupPanels, panels - group * kGroupPanels) * lanes;
  float* const at =
      to + group * kGroupPanels * lanes * columns + panel % kGroupPanels * lanes + output % lanes;
  for (size_t k = 0; k < columns; ++k) at[k * width] = row[k];
}

}  // namespace fusebox::rnn
#endif
