// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/spec.h"

#include <string>

#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/cell/quantized_weights.h"

namespace fusebox::rnn {
GruSpec::GruSpec(const Node& node) {
  if (node.in_count() != kGruOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 6"};
  time_major = node.attrs().b("time_major", false);
  reset_after = node.attrs().b("reset_after", true);
  activation = NamedActivation(node, "activation", "tanh");
  gate_activation = NamedActivation(node, "recurrent_activation", "sigmoid");
  dtype = FloatInput(node);
  NeedOperand(node, kGruInput, 3, dtype);
  NeedOperand(node, kGruState, 2, dtype);
  hybrid = dtype == FBX_F32 && node.has_in(kGruWeights) && node.in(kGruWeights).dtype() == FBX_I8;
  for (const uint32_t i : {kGruWeights, kGruRecurrent}) {
    if (hybrid && node.has_in(i)) CheckStoredWeights(node, i);
    NeedOperand(node, i, 2, hybrid ? FBX_I8 : dtype);
  }
  NeedOperand(node, kGruBias, 1, dtype);
  if (reset_after) NeedOperand(node, kGruRecurrentBias, 1, dtype);
  if (!reset_after && node.has_in(kGruRecurrentBias))
    RefuseOperand("OPERANDS", "is there, but the reset gate comes before the product", kGruRecurrentBias);

  FitSize(node, kGruInput, time_major ? 1 : 0, &batch);
  FitSize(node, kGruInput, time_major ? 0 : 1, &steps);
  FitSize(node, kGruInput, 2, &inputs);
  FitSize(node, kGruRecurrent, 1, &cells);
  FitSize(node, kGruRecurrent, 0, &cells, kGruGates);
  FitSize(node, kGruWeights, 0, &cells, kGruGates);
  FitSize(node, kGruWeights, 1, &inputs);
  FitSize(node, kGruBias, 0, &cells, kGruGates);
  if (reset_after) FitSize(node, kGruRecurrentBias, 0, &cells, kGruGates);
  FitSize(node, kGruState, 0, &batch);
  FitSize(node, kGruState, 1, &cells);
  constant_weights = ConstantOperands(node, kGruWeights, kGruOperands);
}

}  // namespace fusebox::rnn
