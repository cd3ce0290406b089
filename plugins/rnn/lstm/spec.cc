// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/spec.h"

#include <string>

namespace fusebox::rnn {
namespace {

double ParseClip(const Node& node, const char* key) {
  const double clip = node.attrs().f64(key, 0.0);
  if (!(clip >= 0)) throw Reject{"ATTR", "is negative or not a number", std::string("attr ") + key};
  return clip;
}

// `count` operands from `first` on: the operands of the gates that the cell has must be present, the others
// absent.
void RequireGates(const Node& node, uint32_t first, uint32_t count, const LstmSpec& spec) {
  for (uint32_t k = 0; k < count; ++k) {
    if (node.has_in(first + k) == spec.HasGate(k)) continue;
    RejectOperand("OPERANDS", spec.HasGate(k) ? "is absent" : "is present, but the cell has no input gate",
                  first + k);
  }
}

bool Any(const Node& node, uint32_t first, uint32_t count) {
  for (uint32_t k = 0; k < count; ++k) {
    if (node.has_in(first + k)) return true;
  }
  return false;
}

Arithmetic ArithmeticOf(const Node& node) {
  if (node.in(kInput).dtype() == FBX_I8) return Arithmetic::kInteger;
  const bool quantized = IsInt8(node, kInputWeights + kForgetGate);
  return quantized && node.in(kInput).dtype() == FBX_F32 ? Arithmetic::kHybrid : Arithmetic::kFloat;
}

bool IsMatrix(uint32_t operand) {
  return (operand >= kInputWeights && operand < kPeephole) || operand == kProjection;
}

fbx_dtype ExpectedType(Arithmetic arithmetic, uint32_t operand, fbx_dtype input) {
  if (arithmetic == Arithmetic::kFloat) return input;
  if (IsMatrix(operand)) return FBX_I8;
  if (arithmetic == Arithmetic::kHybrid) return FBX_F32;
  if (operand >= kPeephole && operand < kGateBias) return FBX_I16;
  if (operand >= kGateBias && operand <= kProjectionBias) return FBX_I32;
  return operand == kInput || operand == kOutputState ? FBX_I8 : FBX_I16;
}

void CheckTypes(const Node& node, Arithmetic arithmetic) {
  const fbx_dtype input = node.in(kInput).dtype();
  if (input != FBX_F32 && input != FBX_F64 && input != FBX_I8)
    RejectOperand("DTYPE", std::string("is ") + dtype_name(input) + ", only f32, f64 and i8 are supported",
                  kInput);
  const bool hybrid = arithmetic == Arithmetic::kHybrid;
  const std::string beside = hybrid ? "i8 weights" : std::string(dtype_name(input)) + " input";
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    if (!node.has_in(i)) continue;
    const fbx_dtype is = node.in(i).dtype();
    const fbx_dtype expected = ExpectedType(arithmetic, i, input);
    const bool quantized_peephole = hybrid && i >= kPeephole && i < kGateBias && is == FBX_I8;
    if (is == expected || quantized_peephole) continue;
    RejectOperand(
        "DTYPE",
        std::string("is ") + dtype_name(is) + ", expected " + dtype_name(expected) + " beside " + beside, i);
  }
}

}  // namespace

void LstmSpec::ReadOptions(const Node& node) {
  one_step = node.op() == "LSTM";
  if (one_step && node.attrs().s("kernel_type", "FULL") != "FULL")
    throw Reject{"ATTR", "is not FULL", "attr kernel_type"};
  time_major = !one_step && node.attrs().b("time_major", node.op() == "BIDIRECTIONAL_SEQUENCE_LSTM");
  states_are_values = node.op() == "fusebox.lstm";
  if (states_are_values) {
    if (arithmetic == Arithmetic::kInteger)
      RejectOperand("DTYPE", "is i8, only f32 and f64 are supported", kInput);
    activation = ActivationOption(node, "activation", "tanh");
    gate_activation = ActivationOption(node, "recurrent_activation", "sigmoid");
    return;
  }
  activation = FusedActivation(node);
  cell_clip = ParseClip(node, "cell_clip");
  projection_clip = ParseClip(node, "proj_clip");
}

void LstmSpec::ReadVariant(const Node& node) {
  cifg = !node.has_in(kInputWeights);
  peephole = Any(node, kPeephole, 3);
  projection = node.has_in(kProjection);
  layer_norm = Any(node, kLayerNorm, kGates);
  for (const uint32_t first : {kInputWeights, kRecurrentWeights, kGateBias})
    RequireGates(node, first, kGates, *this);
  if (peephole) RequireGates(node, kPeephole, 3, *this);
  if (layer_norm) RequireGates(node, kLayerNorm, kGates, *this);
  if (node.has_in(kProjectionBias) && !projection)
    RejectOperand("OPERANDS", "is present without projection weights", kProjectionBias);
  diagonal = node.in(kRecurrentWeights + kForgetGate).rank() == 1;
}

void LstmSpec::FitSizes(const Node& node) {
  RequireRank(node, kInput, one_step ? 2 : 3);
  FitInput(node);
  for (uint32_t k = 0; k < kGates; ++k) {
    if (!HasGate(k)) continue;
    FitMatrix(node, kInputWeights + k, &cells, &inputs);
    if (diagonal) FitVector(node, kRecurrentWeights + k, &cells);
    else FitMatrix(node, kRecurrentWeights + k, &cells, &outputs);
    FitVector(node, kGateBias + k, &cells);
    if (layer_norm) FitVector(node, kLayerNorm + k, &cells);
  }
  for (uint32_t k = 0; k < 3 && peephole; ++k) {
    if (node.has_in(kPeephole + k)) FitVector(node, kPeephole + k, &cells);
  }
  if (projection) FitMatrix(node, kProjection, &outputs, &cells);
  if (node.has_in(kProjectionBias)) FitVector(node, kProjectionBias, &outputs);
  if (diagonal && outputs < 0) outputs = cells;
  if ((diagonal || !projection) && outputs >= 0 && cells >= 0 && outputs != cells) {
    RejectOperand("SHAPE",
                  "has " + std::to_string(outputs) + " outputs for " + std::to_string(cells) +
                      " cells without projection",
                  kRecurrentWeights + kForgetGate);
  }
  RequireElements(node, kOutputState, {batch, outputs});
  RequireElements(node, kCellState, {batch, cells});
}

LstmSpec::LstmSpec(const Node& node) {
  const uint32_t count = node.in_count();
  if (count != 20 && count != 24)
    throw Reject{"ARITY", "has " + std::to_string(count) + " operands, expected 20 or 24"};
  RequirePresent(node, kInput);
  dtype = node.in(kInput).dtype();
  arithmetic = ArithmeticOf(node);
  CheckTypes(node, arithmetic);
  ReadOptions(node);
  ReadVariant(node);
  FitSizes(node);
  constant_weights =
      ConstantOperands(node, kInputWeights, kPeephole) && ConstantOperands(node, kGateBias, kProjection);
}

}  // namespace fusebox::rnn
