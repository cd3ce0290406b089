// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru_spec.h"

#include <string>

namespace fusebox::rnn {
namespace {

std::string Subject(uint32_t operand) { return "operand " + std::to_string(operand); }

[[noreturn]] void Refuse(const char* code, const std::string& why, uint32_t operand) {
  throw Reject{code, why, Subject(operand)};
}

CellActivation ParseActivation(const Node& node, std::string_view key, std::string_view otherwise) {
  const std::string_view name = node.attrs().s(key, otherwise);
  if (const auto activation = CellActivationOf(name)) return *activation;
  throw Reject{"ATTR", "activation " + std::string(name) + " is not done", "attr " + std::string(key)};
}

void CheckOperand(const Node& node, uint32_t operand, int rank, fbx_dtype dtype) {
  if (!node.has_in(operand)) Refuse("OPERANDS", "is absent", operand);
  const Tensor t = node.in(operand);
  if (t.dtype() != dtype)
    Refuse("DTYPE", std::string("is ") + dtype_name(t.dtype()) + " beside " + dtype_name(dtype) + " input",
           operand);
  if (t.rank() >= 0 && t.rank() != rank)
    Refuse("RANK", "has rank " + std::to_string(t.rank()) + ", expected " + std::to_string(rank), operand);
}

// Fills in `size` when it was not known, else holds the operand to `times` of it.
void Fit(const Node& node, uint32_t operand, int dimension, int64_t* size, int64_t times = 1) {
  if (node.in(operand).rank() < 0) return;
  const int64_t is = node.in(operand).dim(dimension);
  if (is < 0) return;
  if (*size < 0 && is % times == 0) *size = is / times;
  if (*size >= 0 && is % times == 0 && is / times == *size) return;
  Refuse("SHAPE",
         "dimension " + std::to_string(dimension) + " is " + std::to_string(is) + ", expected " +
             (*size < 0 ? "a multiple of " + std::to_string(times) : std::to_string(times * *size)),
         operand);
}

bool AllConstant(const Node& node) {
  for (uint32_t i = kGruWeights; i < kGruOperands; ++i) {
    if (node.has_in(i) && !(node.in(i).is_const() && node.in(i).has_value())) return false;
  }
  return true;
}

}  // namespace

GruSpec::GruSpec(const Node& node) {
  if (node.in_count() != kGruOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 6"};
  time_major = node.attrs().b("time_major", false);
  reset_after = node.attrs().b("reset_after", true);
  activation = ParseActivation(node, "activation", "tanh");
  gate_activation = ParseActivation(node, "recurrent_activation", "sigmoid");
  if (!node.has_in(kGruInput)) Refuse("OPERANDS", "is absent", kGruInput);
  dtype = node.in(kGruInput).dtype();
  if (dtype != FBX_F32 && dtype != FBX_F64)
    Refuse("DTYPE", std::string("is ") + dtype_name(dtype) + ", only f32 and f64 are done", kGruInput);
  CheckOperand(node, kGruInput, 3, dtype);
  for (const uint32_t i : {kGruState, kGruWeights, kGruRecurrent}) CheckOperand(node, i, 2, dtype);
  CheckOperand(node, kGruBias, 1, dtype);
  if (reset_after) CheckOperand(node, kGruRecurrentBias, 1, dtype);
  if (!reset_after && node.has_in(kGruRecurrentBias))
    Refuse("OPERANDS", "is there, but the reset gate comes before the product", kGruRecurrentBias);

  Fit(node, kGruInput, time_major ? 1 : 0, &batch);
  Fit(node, kGruInput, time_major ? 0 : 1, &steps);
  Fit(node, kGruInput, 2, &inputs);
  Fit(node, kGruRecurrent, 1, &cells);
  Fit(node, kGruRecurrent, 0, &cells, kGruGates);
  Fit(node, kGruWeights, 0, &cells, kGruGates);
  Fit(node, kGruWeights, 1, &inputs);
  Fit(node, kGruBias, 0, &cells, kGruGates);
  if (reset_after) Fit(node, kGruRecurrentBias, 0, &cells, kGruGates);
  Fit(node, kGruState, 0, &batch);
  Fit(node, kGruState, 1, &cells);
  constant_weights = AllConstant(node);
}

}  // namespace fusebox::rnn
