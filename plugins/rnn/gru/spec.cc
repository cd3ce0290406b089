// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {

GruSpec::GruSpec(const Node& node) {
  RequireCount(node.in_count(), kGruOperands, "operands");
  time_major = node.attrs().b("time_major", false);
  reset_after = node.attrs().b("reset_after", true);
  activation = ActivationOption(node, "activation", "tanh");
  gate_activation = ActivationOption(node, "recurrent_activation", "sigmoid");
  dtype = FloatInput(node);
  RequireOperand(node, kGruInput, 3, dtype);
  RequireOperand(node, kGruState, 2, dtype);
  hybrid = CheckWeights(node, kGruWeights, kGruRecurrent, dtype);
  RequireOperand(node, kGruBias, 1, dtype);
  if (reset_after) RequireOperand(node, kGruRecurrentBias, 1, dtype);
  if (!reset_after && node.has_in(kGruRecurrentBias))
    RejectOperand("OPERANDS", "is present, but reset_after is false", kGruRecurrentBias);

  FitInput(node);
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
