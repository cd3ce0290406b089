// SPDX-License-Identifier: Apache-2.0
// Checks of a node's operands that several cells share. Each throws Reject.
#pragma once

#include <string>
#include <string_view>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/activation.h"

namespace fusebox::rnn {

[[noreturn]] inline void RefuseOperand(const char* code, const std::string& why, uint32_t operand) {
  throw Reject{code, why, "operand " + std::to_string(operand)};
}

// There, of this type, and of this rank where the rank is known.
inline void NeedOperand(const Node& node, uint32_t operand, int rank, fbx_dtype dtype) {
  if (!node.has_in(operand)) RefuseOperand("OPERANDS", "is absent", operand);
  const Tensor t = node.in(operand);
  if (t.dtype() != dtype)
    RefuseOperand("DTYPE",
                  std::string("is ") + dtype_name(t.dtype()) + " beside " + dtype_name(dtype) + " input",
                  operand);
  if (t.rank() >= 0 && t.rank() != rank)
    RefuseOperand("RANK", "has rank " + std::to_string(t.rank()) + ", expected " + std::to_string(rank),
                  operand);
}

// The type of the input, which decides that of all others: f32 or f64.
inline fbx_dtype FloatInput(const Node& node) {
  if (!node.has_in(0)) RefuseOperand("OPERANDS", "is absent", 0);
  const fbx_dtype dtype = node.in(0).dtype();
  if (dtype != FBX_F32 && dtype != FBX_F64)
    RefuseOperand("DTYPE", std::string("is ") + dtype_name(dtype) + ", only f32 and f64 are done", 0);
  return dtype;
}

// What the builtin op puts on its sums.
inline CellActivation FusedActivation(const Node& node) {
  const std::string_view name = node.attrs().s("fused_activation_function", "NONE");
  if (name == "NONE") return CellActivation::kLinear;
  if (name == "RELU") return CellActivation::kRelu;
  if (name == "RELU_N1_TO_1") return CellActivation::kReluN1To1;
  if (name == "RELU6") return CellActivation::kRelu6;
  if (name == "TANH") return CellActivation::kTanh;
  throw Reject{"ATTR", "activation " + std::string(name) + " is not done", "attr fused_activation_function"};
}

// What an op of ours puts on its sums, by Keras' name; `otherwise` where the option is absent.
inline CellActivation NamedActivation(const Node& node, std::string_view key, std::string_view otherwise) {
  const std::string_view name = node.attrs().s(key, otherwise);
  if (const auto activation = CellActivationOf(name)) return *activation;
  throw Reject{"ATTR", "activation " + std::string(name) + " is not done", "attr " + std::string(key)};
}

// Fills in `size` when it was not known, else holds the operand to `times` of it.
inline void FitSize(const Node& node, uint32_t operand, int dimension, int64_t* size, int64_t times = 1) {
  if (node.in(operand).rank() < 0) return;
  const int64_t is = node.in(operand).dim(dimension);
  if (is < 0) return;
  if (*size < 0 && is % times == 0) *size = is / times;
  if (*size >= 0 && is % times == 0 && is / times == *size) return;
  RefuseOperand("SHAPE",
                "dimension " + std::to_string(dimension) + " is " + std::to_string(is) + ", expected " +
                    (*size < 0 ? "a multiple of " + std::to_string(times) : std::to_string(times * *size)),
                operand);
}

// Are the operands [begin, end) constant and their values at hand, where they are there?
inline bool ConstantOperands(const Node& node, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    if (node.has_in(i) && !(node.in(i).is_const() && node.in(i).has_value())) return false;
  }
  return true;
}

// Parses what supports has taken: what does not fit now is the model's fault at these shapes.
template <class Spec>
Spec ParseSpec(const Node& node) {
  try {
    return Spec(node);
  } catch (const Reject& r) {
    throw Error{FBX_INVALID, r.why, r.subject};
  }
}

}  // namespace fusebox::rnn
