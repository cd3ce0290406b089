// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_RNN: two UNIDIRECTIONAL_SEQUENCE_RNN (rnn/kernel.h) over one input, the second from
// its last step to its first; f32, f64 and f32 with weights of 8 bits.
//
//   operands  0 input [B,T,n], or [T,B,n] with time_major; 1 to 4 the forward cell's weights, recurrent weights, bias and
//             state, 5 to 8 the backward cell's, states updated in place; 9 to 11 an auxiliary input and its weights, which are
//             not done
//   results   0 the sequences side by side with merge_outputs, else 0 forward and 1 backward; both in the input's order. Then
//             the final states, forward and backward.
#pragma once

#include <fusebox/kernel.hpp>

#include "plugins/rnn/rnn/kernel.h"

namespace fusebox::rnn {

class BidirectionalRnnKernel {
 public:
  static constexpr std::string_view builtin = "BIDIRECTIONAL_SEQUENCE_RNN";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  // What prepare found out for given shapes.
  struct Shapes {
    bool merge;
    RnnKernel::Shapes forward, backward;
    uint32_t reversed, ahead, back;  // slots: the input in reverse, and each direction's sequence
  };

  static void supports(const Node& node);
  static void infer(const Node& node, Infer& out);
  explicit BidirectionalRnnKernel(const Node& node);
  Shapes prepare(const Node& node, Plan& plan) const;
  void invoke(const Node& node, const Shapes& shapes) const;

 private:
  template <class T>
  void Run(const Node& node, const Shapes& shapes) const;

  RnnKernel forward_, backward_;
};

}  // namespace fusebox::rnn
