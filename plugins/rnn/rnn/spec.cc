// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/spec.h"

#include <string>

#include "plugins/rnn/cell/operand_checks.h"
#include "plugins/rnn/cell/quantized_weights.h"

namespace fusebox::rnn {
namespace {

void CheckState(const Node& node, const RnnSpec& spec) {
  if (!node.has_in(kRnnState)) RefuseOperand("OPERANDS", "is absent", kRnnState);
  const Tensor state = node.in(kRnnState);
  if (state.dtype() != spec.dtype)
    RefuseOperand(
        "DTYPE",
        std::string("is ") + dtype_name(state.dtype()) + " beside " + dtype_name(spec.dtype) + " input",
        kRnnState);
  if (spec.batch < 0 || spec.cells < 0 || !state.is_static()) return;
  if (state.count() != spec.batch * spec.cells)
    RefuseOperand("SHAPE",
                  "has " + std::to_string(state.count()) + " elements, expected " +
                      std::to_string(spec.batch) + " x " + std::to_string(spec.cells),
                  kRnnState);
}

}  // namespace

RnnSpec::RnnSpec(const Node& node) {
  if (node.in_count() != kRnnOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 5"};
  if (node.out_count() > 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and the state"};
  one_step = node.op() == "RNN";
  time_major = !one_step && node.attrs().b("time_major", false);
  activation = FusedActivation(node);
  dtype = FloatInput(node);
  NeedOperand(node, kRnnInput, one_step ? 2 : 3, dtype);
  hybrid = dtype == FBX_F32 && node.has_in(kRnnWeights) && node.in(kRnnWeights).dtype() == FBX_I8;
  for (const uint32_t weights : {kRnnWeights, kRnnRecurrent}) {
    if (hybrid && node.has_in(weights)) CheckStoredWeights(node, weights);
    NeedOperand(node, weights, 2, hybrid ? FBX_I8 : dtype);
  }
  NeedOperand(node, kRnnBias, 1, dtype);
  FitSize(node, kRnnInput, time_major ? 1 : 0, &batch);
  if (one_step) steps = 1;
  else FitSize(node, kRnnInput, time_major ? 0 : 1, &steps);
  FitSize(node, kRnnInput, one_step ? 1 : 2, &inputs);
  FitSize(node, kRnnRecurrent, 0, &cells);
  FitSize(node, kRnnRecurrent, 1, &cells);
  FitSize(node, kRnnWeights, 0, &cells);
  FitSize(node, kRnnWeights, 1, &inputs);
  FitSize(node, kRnnBias, 0, &cells);
  CheckState(node, *this);
  constant_weights = ConstantOperands(node, kRnnWeights, kRnnState);
}

}  // namespace fusebox::rnn
