// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/svdf/spec.h"

#include <string>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {
namespace {

using Form = SvdfSpec::Form;

Form FormOf(const Node& node) {
  RequirePresent(node, kSvdfInput);
  if (IsInt8(node, kSvdfInput)) return Form::kInteger;
  return FloatInput(node) == FBX_F32 && IsInt8(node, kSvdfFeatures) ? Form::kHybrid : Form::kFloat;
}

void CheckHybrid(const Node& node) {
  for (const uint32_t weights : {kSvdfFeatures, kSvdfTimes}) {
    RequireOperand(node, weights, 2, FBX_I8);
    CheckQuantizedWeights(node, weights);
  }
}

void CheckInteger(const Node& node, SvdfSpec& spec) {
  RequireOperand(node, kSvdfFeatures, 2, FBX_I8);
  CheckQuantizedWeights(node, kSvdfFeatures);
  RequirePresent(node, kSvdfTimes);
  spec.state_dtype = node.in(kSvdfTimes).dtype();
  if (spec.state_dtype != FBX_I16 && spec.state_dtype != FBX_I8)
    RejectOperand("DTYPE",
                  std::string("is ") + dtype_name(spec.state_dtype) + ", only i16 and i8 are supported",
                  kSvdfTimes);
  RequireOperand(node, kSvdfTimes, 2, spec.state_dtype);
  RequireConstant(node, kSvdfTimes);
  ScaleOf(node, kSvdfInput, false);
  ScaleOf(node, kSvdfTimes, true);
  ScaleOf(node, kSvdfState, spec.state_dtype == FBX_I16);
  ScaleOf(node.out(0), "result 0", false);
  if (spec.activation != Activation::kNone && spec.activation != Activation::kRelu)
    throw Reject{"ATTR", "only NONE and RELU are supported in integer arithmetic",
                 "attr fused_activation_function"};
}

void CheckState(const Node& node, const SvdfSpec& spec) {
  const Tensor state = node.in(kSvdfState);
  if (state.dtype() != spec.state_dtype)
    RejectOperand(
        "DTYPE",
        std::string("is ") + dtype_name(state.dtype()) + ", expected " + dtype_name(spec.state_dtype),
        kSvdfState);
  RequireElements(node, kSvdfState, {spec.batch, spec.filters, spec.memory});
}

}  // namespace

SvdfSpec::SvdfSpec(const Node& node) {
  RequireCount(node.in_count(), kSvdfOperands, "operands");
  if (node.out_count() > 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and the state"};
  activation = FusedActivation(node);
  rank = node.attrs().i64("rank", 0);
  if (rank < 1) throw Reject{"ATTR", "is " + std::to_string(rank), "attr rank"};
  form = FormOf(node);
  dtype = state_dtype = node.in(kSvdfInput).dtype();
  RequireOperand(node, kSvdfInput, 2, dtype);
  RequirePresent(node, kSvdfState);
  switch (form) {
    case Form::kFloat:
      RequireOperand(node, kSvdfFeatures, 2, dtype);
      RequireOperand(node, kSvdfTimes, 2, dtype);
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
    RejectOperand("SHAPE",
                  "dimension 0 is " + std::to_string(filters) + ", which is not a multiple of the rank " +
                      std::to_string(rank),
                  kSvdfFeatures);
  if (filters >= 0) units = filters / rank;
  if (memory == 0) RejectOperand("SHAPE", "has no steps", kSvdfTimes);
  if (node.has_in(kSvdfBias)) {
    RequireOperand(node, kSvdfBias, 1, form == Form::kInteger ? FBX_I32 : dtype);
    FitSize(node, kSvdfBias, 0, &units);
  }
  CheckState(node, *this);
}

}  // namespace fusebox::rnn
