// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/simd/cells.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/rnn/simd/cells.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "plugins/math/simd/vector-inl.h"
#include "plugins/rnn/simd/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

// Calls f(row, first cell, cells left) for every vector of cells.
template <class F>
HWY_INLINE void ForCells(const GruTask& task, const F& f) {
  for (size_t row = 0; row < task.rows; ++row) {
    for (size_t cell = 0; cell < task.cells; cell += kFloatLanes) f(row, cell, task.cells - cell);
  }
}

// Gate 0 or 1 (z or r) of a row.
HWY_INLINE FloatVector GateOf(const GruTask& task, size_t gate, size_t row, size_t cell) {
  const size_t at = gate * task.padded + cell;
  const FloatVector sum = hn::Add(hn::LoadU(fd, task.x + row * task.x_stride + at),
                                  hn::LoadU(fd, task.h + row * task.h_stride + at));
  return Activated(fd, sum, task.gate_activation);
}

// z * before + (1 - z) * candidate.
HWY_INLINE void StoreState(const GruTask& task, size_t row, size_t cell, size_t left, FloatVector z,
                           FloatVector candidate_sum) {
  const FloatVector candidate = Activated(fd, candidate_sum, task.activation);
  const FloatVector before = LoadSome(task.before + row * task.before_stride + cell, left);
  const FloatVector kept = hn::Mul(z, before);
  const FloatVector rest = hn::Sub(hn::Set(fd, 1.0f), z);
  StoreSome(hn::MulAdd(rest, candidate, kept), task.after + row * task.after_stride + cell, left);
}

void GruAfter(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) HWY_ATTR {
    const size_t at = 2 * task.padded + cell;
    const FloatVector reset = GateOf(task, 1, row, cell);
    const FloatVector sum = hn::MulAdd(reset, hn::LoadU(fd, task.h + row * task.h_stride + at),
                                       hn::LoadU(fd, task.x + row * task.x_stride + at));
    StoreState(task, row, cell, left, GateOf(task, 0, row, cell), sum);
  });
}

void GruReset(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) HWY_ATTR {
    const FloatVector reset = GateOf(task, 1, row, cell);
    hn::StoreU(GateOf(task, 0, row, cell), fd, task.h + row * task.h_stride + cell);
    const FloatVector before = LoadSome(task.before + row * task.before_stride + cell, left);
    StoreSome(hn::Mul(reset, before), task.after + row * task.after_stride + cell, left);
  });
}

void GruBefore(const GruTask& task) {
  ForCells(task, [&](size_t row, size_t cell, size_t left) HWY_ATTR {
    const size_t at = 2 * task.padded + cell;
    const FloatVector sum = hn::Add(hn::LoadU(fd, task.h + row * task.h_stride + at),
                                    hn::LoadU(fd, task.x + row * task.x_stride + at));
    StoreState(task, row, cell, left, hn::LoadU(fd, task.h + row * task.h_stride + cell), sum);
  });
}

// `finish(sums of i, f, g, o, c before, c after)` returns h.
template <class F>
HWY_INLINE void ForLstmCells(const LstmTask& task, const F& finish) {
  for (size_t i = 0; i < task.count; ++i) {
    const float* const sums = task.sums + i * task.stride;
    for (size_t cell = 0; cell < task.cells; cell += kFloatLanes) {
      const size_t left = task.cells - cell;
      const size_t at = i * task.cells + cell;
      const auto sum = [&](size_t gate) HWY_ATTR { return hn::LoadU(fd, sums + gate * task.cells + cell); };
      FloatVector c = LoadSome(task.c + at, left);
      const FloatVector h = finish(sum(0), sum(1), sum(2), sum(3), c);
      StoreSome(c, task.c + at, left);
      StoreSome(h, task.h + at, left);
    }
  }
}

void Lstm(const LstmTask& task) {
  using V = FloatVector;
  if (HWY_LIKELY(task.activation == Activation::kTanh && task.gate_activation == Activation::kSigmoid))
    return ForLstmCells(task, [](V i, V f, V g, V o, V& c) HWY_ATTR {
      c = hn::MulAdd(Sigmoid(fd, f), c, GatedTanh(fd, i, g));
      return GatedTanh(fd, o, c);
    });
  const auto gate = [&](V sum) HWY_ATTR { return Activated(fd, sum, task.gate_activation); };
  const auto act = [&](V sum) HWY_ATTR { return Activated(fd, sum, task.activation); };
  ForLstmCells(task, [&](V i, V f, V g, V o, V& c) HWY_ATTR {
    c = hn::MulAdd(gate(f), c, hn::Mul(gate(i), act(g)));
    return hn::Mul(gate(o), act(c));
  });
}

void ActivateRow(Activation activation, size_t cells, const float* sums, float* out) {
  for (size_t cell = 0; cell < cells; cell += kFloatLanes)
    StoreSome(Activated(fd, LoadSome(sums + cell, cells - cell), activation), out + cell, cells - cell);
}

const CellCode& CellsCode() {
  static constexpr CellCode code{kFloatLanes,
                                 GruAfter,
                                 GruReset,
                                 GruBefore,
                                 Lstm,
                                 {WinogradIn<0>, WinogradIn<1>, WinogradIn<2>, WinogradIn<3>},
                                 {WinogradOut<0>, WinogradOut<1>, WinogradOut<2>, WinogradOut<3>},
                                 Within,
                                 ActivateRow};
  return code;
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fusebox::rnn {

std::vector<const CellCode*> CellCodes() { return FUSEBOX_SIMD_TABLES(CellCode, CellsCode); }

}  // namespace fusebox::rnn
#endif
