// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/svdf/spec.h"

#include <string>

#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/cell/quantized_weights.h"

namespace fusebox::rnn {
namespace {

using Form = SvdfSpec::Form;

Form FormOf(const Node& node) {
  if (!node.has_in(kSvdfInput)) RefuseOperand("OPERANDS", "is absent", kSvdfInput);
  if (node.in(kSvdfInput).dtype() == FBX_I8) return Form::kInteger;
  const bool bytes =
      FloatInput(node) == FBX_F32 && node.has_in(kSvdfFeatures) && node.in(kSvdfFeatures).dtype() == FBX_I8;
  return bytes ? Form::kHybrid : Form::kFloat;
}

void CheckHybrid(const Node& node) {
  for (const uint32_t weights : {kSvdfFeatures, kSvdfTimes}) {
    NeedOperand(node, weights, 2, FBX_I8);
    CheckStoredWeights(node, weights);
  }
}

void CheckInteger(const Node& node, SvdfSpec& spec) {
  NeedOperand(node, kSvdfFeatures, 2, FBX_I8);
  CheckStoredWeights(node, kSvdfFeatures);
  if (!node.has_in(kSvdfTimes)) RefuseOperand("OPERANDS", "is absent", kSvdfTimes);
  spec.state_dtype = node.in(kSvdfTimes).dtype();
  if (spec.state_dtype != FBX_I16 && spec.state_dtype != FBX_I8)
    RefuseOperand("DTYPE", std::string("is ") + dtype_name(spec.state_dtype) + ", i16 and i8 are done",
                  kSvdfTimes);
  NeedOperand(node, kSvdfTimes, 2, spec.state_dtype);
  NeedConstant(node, kSvdfTimes);
  ScaleOf(node.in(kSvdfInput), "operand 0", false);
  ScaleOf(node.in(kSvdfTimes), "operand 2", true);
  ScaleOf(node.in(kSvdfState), "operand 4", spec.state_dtype == FBX_I16);
  ScaleOf(node.out(0), "result 0", false);
  if (spec.activation != CellActivation::kLinear && spec.activation != CellActivation::kRelu)
    throw Reject{"ATTR", "in integers NONE and RELU are done", "attr fused_activation_function"};
}

void CheckState(const Node& node, const SvdfSpec& spec) {
  const Tensor state = node.in(kSvdfState);
  if (state.dtype() != spec.state_dtype)
    RefuseOperand(
        "DTYPE",
        std::string("is ") + dtype_name(state.dtype()) + ", expected " + dtype_name(spec.state_dtype),
        kSvdfState);
  if (spec.batch < 0 || spec.filters < 0 || spec.memory < 0 || !state.is_static()) return;
  if (state.count() != spec.batch * spec.filters * spec.memory)
    RefuseOperand("SHAPE",
                  "has " + std::to_string(state.count()) + " elements, expected " +
                      std::to_string(spec.batch) + " x " + std::to_string(spec.filters) + " x " +
                      std::to_string(spec.memory),
                  kSvdfState);
}

}  // namespace

SvdfSpec::SvdfSpec(const Node& node) {
  if (node.in_count() != kSvdfOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 5"};
  if (node.out_count() > 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and the state"};
  activation = FusedActivation(node);
  rank = node.attrs().i64("rank", 0);
  if (rank < 1) throw Reject{"ATTR", "is " + std::to_string(rank), "attr rank"};
  form = FormOf(node);
  dtype = state_dtype = node.in(kSvdfInput).dtype();
  NeedOperand(node, kSvdfInput, 2, dtype);
  if (!node.has_in(kSvdfState)) RefuseOperand("OPERANDS", "is absent", kSvdfState);
  switch (form) {
    case Form::kFloat:
      NeedOperand(node, kSvdfFeatures, 2, dtype);
      NeedOperand(node, kSvdfTimes, 2, dtype);
      break;
    case Form::kHybrid: CheckHybrid(node); break;
    case Form::kInteger: CheckInteger(node, *this); break;
  }
  FitSize(node, kSvdfInput, 0, &batch);
  FitSize(node, kSvdfInput, 1, &inputs);
  FitSize(node, kSvdfFeatures, 0, &filters);
  FitSize(node, kSvdfFeatures, 1, &inputs);
  FitSize(node, kSvdfTimes, 0, &filters);
  FitSize(node, kSvdfTimes, 1, &memory);
  if (filters >= 0 && filters % rank != 0)
    RefuseOperand(
        "SHAPE",
        "dimension 0 is " + std::to_string(filters) + ", no multiple of the rank " + std::to_string(rank),
        kSvdfFeatures);
  if (filters >= 0) units = filters / rank;
  if (memory == 0) RefuseOperand("SHAPE", "remembers no step", kSvdfTimes);
  if (node.has_in(kSvdfBias)) {
    NeedOperand(node, kSvdfBias, 1, form == Form::kInteger ? FBX_I32 : dtype);
    FitSize(node, kSvdfBias, 0, &units);
  }
  CheckState(node, *this);
}

}  // namespace fusebox::rnn
