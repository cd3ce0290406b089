// SPDX-License-Identifier: Apache-2.0
// The elementwise part of a plain LSTM cell, on vectors of cells. Compiled once per target.
#if defined(FUSEBOX_RNN_SIMD_LSTM_CELL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FUSEBOX_RNN_SIMD_LSTM_CELL_INL_H_
#undef FUSEBOX_RNN_SIMD_LSTM_CELL_INL_H_
#else
#define FUSEBOX_RNN_SIMD_LSTM_CELL_INL_H_
#endif

#include "plugins/math/simd/vector-inl.h"
#include "plugins/rnn/simd/lstm.h"

HWY_BEFORE_NAMESPACE();
namespace fusebox::rnn::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace math::HWY_NAMESPACE;

template <class Task>
HWY_INLINE FloatVector ClipCell(const Task& task, FloatVector cell) {
  if (task.cell_clip > 0) return Clamp(fd, cell, hn::Set(fd, -task.cell_clip), hn::Set(fd, task.cell_clip));
  return cell;
}

// FinishBlock for activations other than Keras' defaults. Not inlined, so that the vectors of the default
// case stay in registers.
template <class Task>
HWY_NOINLINE void FinishOtherBlock(const Task& task, const FloatVector* sums, float* c, float* h,
                                   size_t count) {
  const auto gate = [&](Gate k) HWY_ATTR { return Activated(fd, sums[k], task.gate_activation); };
  const FloatVector in = hn::Mul(gate(kInGate), Activated(fd, sums[kCellGate], task.activation));
  const FloatVector cell = ClipCell(task, hn::MulAdd(gate(kForgetGate), LoadSome(c, count), in));
  StoreSome(cell, c, count);
  StoreSome(hn::Mul(gate(kOutGate), Activated(fd, cell, task.activation)), h, count);
}

// Gates, cell and output of `count` cells.
template <class Task>
HWY_INLINE void FinishBlock(const Task& task, const FloatVector (&sums)[kGates], float* c, float* h,
                            size_t count) {
  if (HWY_UNLIKELY(task.activation != Activation::kTanh || task.gate_activation != Activation::kSigmoid)) {
    const FloatVector copies[kGates] = {sums[0], sums[1], sums[2], sums[3]};
    return FinishOtherBlock(task, copies, c, h, count);
  }
  const FloatVector in = GatedTanh(fd, sums[kInGate], sums[kCellGate]);
  const FloatVector cell = ClipCell(task, hn::MulAdd(Sigmoid(fd, sums[kForgetGate]), LoadSome(c, count), in));
  StoreSome(cell, c, count);
  StoreSome(GatedTanh(fd, sums[kOutGate], cell), h, count);
}

}  // namespace fusebox::rnn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
