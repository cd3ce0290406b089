// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/bidirectional_spec.h"

#include <algorithm>
#include <string>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {
namespace {

// Before the cells are looked at, which count on them.
bool CheckNode(const Node& node) {
  if (node.in_count() != kBidirectionalOperands)
    throw Reject{"ARITY", "has " + std::to_string(node.in_count()) + " operands, expected 48"};
  const fbx_dtype dtype = FloatInput(node);
  for (uint32_t i = 1; i < kBidirectionalOperands; ++i) {
    if (!node.has_in(i)) continue;
    if (i > kBackwardStates + 1) RefuseOperand("OPERANDS", "is there: auxiliary inputs are not done", i);
    const bool hybrid = dtype == FBX_F32 && node.in(i).dtype() == FBX_I8;  // the cells say where it may be
    if (node.in(i).dtype() != dtype && !hybrid)
      RefuseOperand(
          "DTYPE",
          std::string("is ") + dtype_name(node.in(i).dtype()) + " beside " + dtype_name(dtype) + " input", i);
  }
  return node.attrs().b("merge_outputs", false);
}

LstmSpec SpecOf(const Node& node, bool backward) {
  const DirectionNode direction(node, backward);
  try {
    return LstmSpec(direction.node(), true);
  } catch (Reject& r) {
    r.subject = (backward ? "backward LSTM, " : "forward LSTM, ") + r.subject;
    throw;
  }
}

}  // namespace

DirectionNode::DirectionNode(const Node& node, bool backward) : host_(node.host()), node_(*node.abi()) {
  const fbx_tensor* const* const from = node.abi()->operands;
  operands_[kInput] = from[kInput];
  std::copy_n(from + (backward ? 18 : 1), 17, operands_.begin() + kInputWeights);
  std::copy_n(from + (backward ? kBackwardStates : kForwardStates), 2, operands_.begin() + kOutputState);
  node_.operand_count = static_cast<uint32_t>(operands_.size());
  node_.operands = operands_.data();
  node_.result_count = 0;
}

BidirectionalSpec::BidirectionalSpec(const Node& node)
    : merge(CheckNode(node)), forward(SpecOf(node, false)), backward(SpecOf(node, true)) {
  const uint32_t outputs = merge ? 1 : 2;
  if (node.out_count() != outputs && node.out_count() != outputs + 4)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected " +
                              std::to_string(outputs) + ", and 4 states"};
}

}  // namespace fusebox::rnn
