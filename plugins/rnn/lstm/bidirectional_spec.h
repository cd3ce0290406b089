// SPDX-License-Identifier: Apache-2.0
// What a BIDIRECTIONAL_SEQUENCE_LSTM node says: two LSTMs (lstm/spec.h) over one input, the second from its
// last step to its first.
//
//   operands  0 input [B,T,n], or [T,B,n] with time_major (which is true unless stated); 1 to 17 the forward cell's weights in the
//             order of UNIDIRECTIONAL_SEQUENCE_LSTM's, 18 to 34 the backward cell's; 35, 36 forward and 37, 38 backward states,
//             updated in place; 39 to 47 an auxiliary input and its weights, which are not done
//   results   0 the sequences side by side with merge_outputs, else 0 forward and 1 backward; both in the input's
//             order. Then the four final states.
#pragma once

#include <array>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

inline constexpr uint32_t kBidirectionalOperands = 48, kForwardStates = 35, kBackwardStates = 37;

// One direction as the node of an LSTM, without results. Borrows what the node borrows.
class DirectionNode {
 public:
  DirectionNode(const Node& node, bool backward);
  Node node() const { return {host_, &node_}; }
  DirectionNode(const DirectionNode&) = delete;
  DirectionNode& operator=(const DirectionNode&) = delete;

 private:
  const fbx_host* host_;
  std::array<const fbx_tensor*, 20> operands_;
  fbx_node node_;
};

struct BidirectionalSpec {
  // Throws Reject for what is not done or does not fit together. Sizes that are not known yet are -1 and fit.
  explicit BidirectionalSpec(const Node& node);

  bool merge;
  LstmSpec forward, backward;  // of the same batch, steps, inputs and type
};

}  // namespace fusebox::rnn
