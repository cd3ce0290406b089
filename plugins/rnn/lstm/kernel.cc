// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/kernel.h"

#include <string>

#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {

std::unique_ptr<const LstmEngine> MakeEngine(const LstmSpec& spec, const Node& node) {
  if (spec.arithmetic == Arithmetic::kHybrid) return MakeHybridLstm(spec, node);
  if (spec.arithmetic == Arithmetic::kInteger) return MakeIntegerLstm(spec, node);
  if (spec.dtype == FBX_F32 && spec.plain() && spec.constant_weights) return MakePackedLstm(spec, node);
  return MakeReferenceLstm(spec);
}

void LstmOps::supports(const Node& node) {
  const LstmSpec spec(node);
  if (node.out_count() != 3 && (node.out_count() != 1 || spec.states_are_values))
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and 2 states"};
  if (spec.arithmetic != Arithmetic::kFloat && spec.diagonal)
    RejectOperand("OPERANDS", "is diagonal, which is supported for f32 and f64 only", kRecurrentWeights + 1);
  if (spec.arithmetic == Arithmetic::kHybrid) CheckHybridLstm(node);
  if (spec.arithmetic == Arithmetic::kInteger) CheckIntegerLstm(spec, node);
}

void LstmOps::infer(const Node& node, Infer& out) {
  const auto spec = ParseSpec<LstmSpec>(node);
  SetSequence(out, 0, spec, spec.outputs);
  if (spec.states_are_values) {
    out.set(1, spec.dtype, {spec.batch, spec.outputs});
    return out.set(2, spec.dtype, {spec.batch, spec.cells});
  }
  if (node.out_count() > 1) out.like(1, node.in(kOutputState));
  if (node.out_count() > 2) out.like(2, node.in(kCellState));
}

}  // namespace fusebox::rnn
