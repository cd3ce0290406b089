// SPDX-License-Identifier: Apache-2.0
// What quantized operands of an LSTM must be.
#pragma once

#include <cmath>
#include <string>

#include <fusebox/kernel.hpp>

namespace fusebox::rnn {

// Of a tensor with one scale and a zero point of 8 bits; throws Reject for any other. `symmetric`: it has no
// zero point.
inline float ScaleOf(Tensor t, const std::string& subject, bool symmetric) {
  const fbx_quant* const q = t.quant();
  if (q == nullptr || q->count != 1 || !(q->scales[0] > 0) || !std::isfinite(q->scales[0]))
    throw Reject{"QUANT", "has no single scale", subject};
  if (symmetric && q->zero_points[0] != 0) throw Reject{"QUANT", "has a zero point", subject};
  if (q->zero_points[0] < -128 || q->zero_points[0] > 127)
    throw Reject{"QUANT", "has the zero point " + std::to_string(q->zero_points[0]), subject};
  return q->scales[0];
}

inline void NeedConstant(const Node& node, uint32_t operand) {
  if (node.in(operand).is_const() && node.in(operand).has_value()) return;
  throw Reject{"NONCONST", "is computed; quantized weights are constant",
               "operand " + std::to_string(operand)};
}

// Weights of 8 bits. Rows are no longer than sums of 32 bits can take.
inline void CheckStoredWeights(const Node& node, uint32_t operand) {
  const Tensor t = node.in(operand);
  const std::string subject = "operand " + std::to_string(operand);
  if (t.dtype() != FBX_I8)
    throw Reject{"DTYPE", std::string("is ") + dtype_name(t.dtype()) + " beside other weights of 8 bits",
                 subject};
  NeedConstant(node, operand);
  ScaleOf(t, subject, true);
  if (t.rank() > 0 && t.dim(-1) > 65536) throw Reject{"SHAPE", "has rows longer than 65536", subject};
}

}  // namespace fusebox::rnn
