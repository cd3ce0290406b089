// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/spec.h"

#include <cmath>
#include <initializer_list>
#include <string>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {
namespace {

std::string Subject(uint32_t operand) { return "operand " + std::to_string(operand); }

[[noreturn]] void Refuse(const char* code, const std::string& why, uint32_t operand) {
  throw Reject{code, why, Subject(operand)};
}

double ParseClip(const Node& node, const char* key) {
  const double clip = node.attrs().f64(key, 0.0);
  if (!(clip >= 0)) throw Reject{"ATTR", "is negative or not a number", std::string("attr ") + key};
  return clip;
}

// Fills in `size` when it was not known, else holds the operand to it.
void Fit(const Node& node, uint32_t operand, int dimension, int64_t* size) {
  if (node.in(operand).rank() < 0) return;
  const int64_t is = node.in(operand).dim(dimension);
  if (is < 0) return;
  if (*size < 0) *size = is;
  if (*size != is) {
    Refuse("SHAPE",
           "dimension " + std::to_string(dimension) + " is " + std::to_string(is) + ", expected " +
               std::to_string(*size),
           operand);
  }
}

void NeedRank(const Node& node, uint32_t operand, int rank) {
  if (node.in(operand).rank() >= 0 && node.in(operand).rank() != rank) {
    Refuse("RANK",
           "has rank " + std::to_string(node.in(operand).rank()) + ", expected " + std::to_string(rank),
           operand);
  }
}

void FitMatrix(const Node& node, uint32_t operand, int64_t* rows, int64_t* columns) {
  NeedRank(node, operand, 2);
  Fit(node, operand, 0, rows);
  Fit(node, operand, 1, columns);
}

void FitVector(const Node& node, uint32_t operand, int64_t* size) {
  NeedRank(node, operand, 1);
  Fit(node, operand, 0, size);
}

// The operands first, first + 1, ... of the gates that the cell has are all there, and of the others none.
void NeedGates(const Node& node, uint32_t first, uint32_t count, bool cifg) {
  for (uint32_t k = 0; k < count; ++k) {
    const bool wanted = !(cifg && k == kInGate);
    if (node.has_in(first + k) == wanted) continue;
    Refuse("OPERANDS", wanted ? "is absent" : "is there, but the cell has no input gate", first + k);
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
  const uint32_t weights = kInputWeights + kForgetGate;
  const bool stored = node.has_in(weights) && node.in(weights).dtype() == FBX_I8;
  return stored && node.in(kInput).dtype() == FBX_F32 ? Arithmetic::kHybrid : Arithmetic::kFloat;
}

bool IsMatrix(uint32_t operand) {
  return (operand >= kInputWeights && operand < kPeephole) || operand == kProjection;
}

fbx_dtype TypeIn(Arithmetic arithmetic, uint32_t operand, fbx_dtype input) {
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
    Refuse("DTYPE", std::string("is ") + dtype_name(input) + ", only f32, f64 and i8 are done", kInput);
  for (uint32_t i = 0; i < node.in_count(); ++i) {
    if (!node.has_in(i)) continue;
    const fbx_dtype is = node.in(i).dtype(), wanted = TypeIn(arithmetic, i, input);
    const bool stored_peephole =
        arithmetic == Arithmetic::kHybrid && i >= kPeephole && i < kGateBias && is == FBX_I8;
    if (is == wanted || stored_peephole) continue;
    Refuse("DTYPE",
           std::string("is ") + dtype_name(is) + ", expected " + dtype_name(wanted) +
               (arithmetic == Arithmetic::kHybrid ? " beside weights of 8 bits"
                                                  : std::string(" beside ") + dtype_name(input) + " input"),
           i);
  }
}

void CheckState(const Node& node, uint32_t operand, int64_t batch, int64_t width) {
  if (!node.has_in(operand)) Refuse("OPERANDS", "is absent", operand);
  const Tensor state = node.in(operand);
  if (batch < 0 || width < 0 || !state.is_static()) return;
  if (state.count() != batch * width) {
    Refuse("SHAPE",
           "has " + std::to_string(state.count()) + " elements, expected " + std::to_string(batch) + " x " +
               std::to_string(width),
           operand);
  }
}

bool AllConstant(const Node& node, std::initializer_list<uint32_t> firsts) {
  for (const uint32_t first : firsts) {
    for (uint32_t k = 0; k < kGates; ++k) {
      if (node.has_in(first + k) && !(node.in(first + k).is_const() && node.in(first + k).has_value()))
        return false;
    }
  }
  return true;
}

}  // namespace

void LstmSpec::ReadFunctions(const Node& node) {
  states_are_values = node.op() == "fusebox.lstm";
  if (states_are_values) {
    if (arithmetic == Arithmetic::kInteger) Refuse("DTYPE", "is i8, only f32 and f64 are done", kInput);
    activation = NamedActivation(node, "activation", "tanh");
    gate_activation = NamedActivation(node, "recurrent_activation", "sigmoid");
    return;
  }
  activation = FusedActivation(node);
  cell_clip = ParseClip(node, "cell_clip");
  projection_clip = ParseClip(node, "proj_clip");
}

LstmSpec::LstmSpec(const Node& node, bool time_major_unless_stated) {
  const uint32_t count = node.in_count();
  if (count != 20 && count != 24)
    throw Reject{"ARITY", "has " + std::to_string(count) + " operands, expected 20 or 24"};
  if (!node.has_in(kInput)) Refuse("OPERANDS", "is absent", kInput);
  dtype = node.in(kInput).dtype();
  arithmetic = ArithmeticOf(node);
  CheckTypes(node, arithmetic);
  one_step = node.op() == "LSTM";
  if (one_step && node.attrs().s("kernel_type", "FULL") != "FULL")
    throw Reject{"ATTR", "is not FULL", "attr kernel_type"};
  time_major = !one_step && node.attrs().b("time_major", time_major_unless_stated);
  ReadFunctions(node);
  cifg = !node.has_in(kInputWeights);
  peephole = Any(node, kPeephole, 3);
  projection = node.has_in(kProjection);
  layer_norm = Any(node, kLayerNorm, kGates);

  NeedGates(node, kInputWeights, kGates, cifg);
  NeedGates(node, kRecurrentWeights, kGates, cifg);
  NeedGates(node, kGateBias, kGates, cifg);
  if (peephole) NeedGates(node, kPeephole, 3, cifg);
  if (layer_norm) NeedGates(node, kLayerNorm, kGates, cifg);
  if (node.has_in(kProjectionBias) && !projection)
    Refuse("OPERANDS", "is there, but no projection", kProjectionBias);

  NeedRank(node, kInput, one_step ? 2 : 3);
  Fit(node, kInput, time_major ? 1 : 0, &batch);
  if (one_step) steps = 1;
  else Fit(node, kInput, time_major ? 0 : 1, &steps);
  Fit(node, kInput, one_step ? 1 : 2, &inputs);
  diagonal = node.in(kRecurrentWeights + kForgetGate).rank() == 1;
  for (uint32_t k = 0; k < kGates; ++k) {
    if (cifg && k == kInGate) continue;
    FitMatrix(node, kInputWeights + k, &cells, &inputs);
    if (diagonal) {
      FitVector(node, kRecurrentWeights + k, &cells);
    } else {
      FitMatrix(node, kRecurrentWeights + k, &cells, &outputs);
    }
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
    Refuse("SHAPE",
           "gives " + std::to_string(outputs) + " outputs for " + std::to_string(cells) +
               " cells without projection",
           kRecurrentWeights + kForgetGate);
  }
  CheckState(node, kOutputState, batch, outputs);
  CheckState(node, kCellState, batch, cells);
  constant_weights = AllConstant(node, {kInputWeights, kRecurrentWeights, kGateBias});
}

}  // namespace fusebox::rnn
