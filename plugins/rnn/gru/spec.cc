// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/spec.h"

namespace fusebox::rnn {
namespace {

fbx_dtype TypeOfInput(const Node& node) {
  RequirePresent(node, kGruInput);
  const fbx_dtype is = node.in(kGruInput).dtype();
  if (is != FBX_F32 && is != FBX_F64 && is != FBX_I8)
    RejectOperand("DTYPE", std::string("is ") + dtype_name(is) + ", only f32, f64 and i8 are supported",
                  kGruInput);
  return is;
}

void RequireBias(const Node& node, uint32_t operand, fbx_dtype input) {
  if (input != FBX_I8) return RequireOperand(node, operand, 1, input);
  RequirePresent(node, operand);
  RequireRank(node, operand, 1);
  const fbx_dtype is = node.in(operand).dtype();
  if (is != FBX_I32)
    RejectOperand("DTYPE", std::string("is ") + dtype_name(is) + ", expected i32 beside i8 input", operand);
}

}  // namespace

GruSpec::GruSpec(const Node& node) {
  RequireCount(node.in_count(), kGruOperands, "operands");
  time_major = node.attrs().b("time_major", false);
  reset_after = node.attrs().b("reset_after", true);
  activation = ActivationOption(node, "activation", "tanh");
  gate_activation = ActivationOption(node, "recurrent_activation", "sigmoid");
  dtype = TypeOfInput(node);
  integer = dtype == FBX_I8;
  RequireOperand(node, kGruInput, 3, dtype);
  RequireOperand(node, kGruState, 2, dtype);
  hybrid = CheckWeights(node, kGruWeights, kGruRecurrent, dtype);
  RequireBias(node, kGruBias, dtype);
  if (reset_after) RequireBias(node, kGruRecurrentBias, dtype);
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
