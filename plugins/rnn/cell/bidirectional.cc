// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/bidirectional.h"

#include <algorithm>

namespace fusebox::rnn {
namespace {

// Calls f(i, reversed i): the index of each vector, and the index of the same row with time reversed. No
// calls for empty vectors: there may be more of them than memory has bytes.
template <class F>
void ForVectors(const SequenceSpec& s, size_t bytes, const F& f) {
  if (bytes == 0) return;
  for (int64_t step = 0; step < s.steps; ++step) {
    for (int64_t row = 0; row < s.batch; ++row)
      f(static_cast<size_t>(s.at(row, step)), static_cast<size_t>(s.at(row, s.steps - 1 - step)));
  }
}

}  // namespace

DirectionNode::DirectionNode(const BidirectionalLayout& layout, const Node& node, bool merge, bool backward)
    : host_(node.host()), node_(*node.abi()) {
  const uint32_t outputs = merge ? 1 : 2;
  const uint32_t weights = 1 + layout.weight_count;
  const fbx_tensor* const* const from = node_.operands;
  const fbx_tensor* const* const to = node_.results;
  operands_[0] = from[0];
  std::copy_n(from + layout.weights[backward], layout.weight_count, operands_.begin() + 1);
  std::copy_n(from + layout.states[backward], layout.state_count, operands_.begin() + weights);
  results_[0] = to[merge ? 0 : backward];
  const bool states = node_.result_count > outputs;
  if (states)
    std::copy_n(to + outputs + backward * layout.state_count, layout.state_count, results_.begin() + 1);
  node_.operands = operands_.data();
  node_.operand_count = weights + layout.state_count;
  node_.results = results_.data();
  node_.result_count = states ? 1 + layout.state_count : 1;
}

void DirectionNode::Bind(void* input, void* output) {
  input_ = output_ = *operands_[0];
  input_.data = input;
  output_.data = output;
  operands_[0] = &input_;
  results_[0] = &output_;
}

bool CheckBidirectional(const BidirectionalLayout& layout, const Node& node) {
  RequireCount(node.in_count(), layout.operands, "operands");
  FloatInput(node);
  for (uint32_t i = layout.auxiliary; i < layout.operands; ++i) {
    if (node.has_in(i)) RejectOperand("OPERANDS", "is present: auxiliary inputs are not supported", i);
  }
  const bool merge = node.attrs().b("merge_outputs", false);
  const uint32_t outputs = merge ? 1 : 2;
  const uint32_t states = 2 * layout.state_count;
  if (node.out_count() != outputs && node.out_count() != outputs + states)
    throw Reject{"ARITY", "has " + std::to_string(node.out_count()) + " results, expected " +
                              std::to_string(outputs) + ", and " + std::to_string(states) + " states"};
  return merge;
}

void InferBidirectional(const BidirectionalLayout& layout, const Node& node, const SequenceSpec& forward,
                        int64_t forward_width, int64_t backward_width, Infer& out) {
  uint32_t next = 0;
  if (node.attrs().b("merge_outputs", false)) {
    const bool known = forward_width >= 0 && backward_width >= 0;
    SetSequence(out, next++, forward, known ? forward_width + backward_width : -1);
  } else {
    SetSequence(out, next++, forward, forward_width);
    SetSequence(out, next++, forward, backward_width);
  }
  for (const uint32_t first : layout.states) {
    for (uint32_t state = first; state < first + layout.state_count && next < node.out_count(); ++state)
      out.like(next++, node.in(state));
  }
}

void ReverseSteps(const SequenceSpec& spec, const std::byte* in, size_t bytes, std::byte* out) {
  ForVectors(spec, bytes,
             [&](size_t i, size_t reversed) { std::copy_n(in + reversed * bytes, bytes, out + i * bytes); });
}

void JoinDirections(const SequenceSpec& spec, const std::byte* forward, size_t forward_bytes,
                    const std::byte* backward, size_t backward_bytes, std::byte* out) {
  const size_t both = forward_bytes + backward_bytes;
  ForVectors(spec, both, [&](size_t i, size_t reversed) {
    std::copy_n(forward + i * forward_bytes, forward_bytes, out + i * both);
    std::copy_n(backward + reversed * backward_bytes, backward_bytes, out + i * both + forward_bytes);
  });
}

}  // namespace fusebox::rnn
