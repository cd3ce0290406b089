// SPDX-License-Identifier: Apache-2.0
// What a UNIDIRECTIONAL_SEQUENCE_RNN node says: its sizes and options, checked. RNN is the same of one step,
// with input [B,n] and result [B,u].
//
//   operands  0 input [B,T,n], or [T,B,n] with time_major; 1 input weights [u,n]; 2 recurrent weights [u,u]; 3 bias [u];
//             4 state, B * u elements, updated in place
//   results   0 the sequence of states, as the input with u last; 1 the final state, in the memory of operand 4
//
// Per step, with x the input and h the state: h' = act(W x + b + R h).
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/activation.h"

namespace fusebox::rnn {

enum RnnOperand : uint32_t { kRnnInput, kRnnWeights, kRnnRecurrent, kRnnBias, kRnnState, kRnnOperands };

struct RnnSpec {
  // Throws Reject for what is not done or does not fit together. Sizes that are not known yet are -1 and fit.
  explicit RnnSpec(const Node& node);

  int64_t batch = -1, steps = -1, inputs = -1, cells = -1;
  bool one_step = false;  // RNN: steps are 1
  bool time_major = false;
  CellActivation activation = CellActivation::kTanh;
  fbx_dtype dtype = FBX_F32;      // of every operand, but for weights of 8 bits
  bool hybrid = false;            // f32 with i8 operands 1 and 2, constant
  bool constant_weights = false;  // operands 1 to 3
};

}  // namespace fusebox::rnn
