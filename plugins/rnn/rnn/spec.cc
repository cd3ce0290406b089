// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/spec.h"

#include <string>

namespace fusebox::rnn {

RnnSpec::RnnSpec(const Node& node) {
  RequireCount(node.in_count(), kRnnOperands, "operands");
  if (node.out_count() > 2)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected 1, and the state"};
  one_step = node.op() == "RNN";
  time_major = !one_step && node.attrs().b("time_major", false);
  activation = FusedActivation(node);
  dtype = FloatInput(node);
  RequireOperand(node, kRnnInput, one_step ? 2 : 3, dtype);
  hybrid = CheckWeights(node, kRnnWeights, kRnnRecurrent, dtype);
  RequireOperand(node, kRnnBias, 1, dtype);
  FitInput(node);
  FitMatrix(node, kRnnRecurrent, &cells, &cells);
  FitMatrix(node, kRnnWeights, &cells, &inputs);
  FitVector(node, kRnnBias, &cells);
  RequirePresent(node, kRnnState);
  RequireType(node, kRnnState, dtype);
  RequireElements(node, kRnnState, {batch, cells});
  constant_weights = ConstantOperands(node, kRnnWeights, kRnnState);
}

}  // namespace fusebox::rnn
