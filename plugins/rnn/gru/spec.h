// SPDX-License-Identifier: Apache-2.0
// The checked sizes and options of a fusebox.gru node.
//
//   operands  0 input [B,T,n], or [T,B,n] with time_major; 1 initial state [B,u]; 2 input weights [3u,n];
//             3 recurrent weights [3u,u]; 4 input bias [3u]; 5 recurrent bias [3u], absent unless reset_after.
//             Rows of weights and biases are in the order z (update), r (reset), h (candidate). With an f32 input both
//             weights may be i8 (cell/hybrid_product.h). With an i8 input, weights, states and results are i8 and
//             biases i32 (gru/integer.cc).
//   results   0 the sequence of states, as the input with u last; 1 the final state [B,u]
//   options   time_major (false), reset_after (true), activation ("tanh"), recurrent_activation ("sigmoid"); the two are
//             one of linear, relu, relu6, tanh, sigmoid, hard_sigmoid, hard_sigmoid_of_keras_3; with i8 weights
//             asymmetric_quantize_inputs (false)
//
// Per step, with x the input and h the state, W, R and b, c the weights and biases:
//   z = gate(Wz x + bz + Rz h + cz)    r = gate(Wr x + br + Rr h + cr)
//   g = act(Wh x + bh + r * (Rh h + ch)) with reset_after, else act(Wh x + bh + Rh (r * h))
//   h' = z * h + (1 - z) * g
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/kernel.h"

namespace fusebox::rnn {

using namespace sdk;

enum GruOperand : uint32_t {
  kGruInput,
  kGruState,
  kGruWeights,
  kGruRecurrent,
  kGruBias,
  kGruRecurrentBias,
  kGruOperands
};
inline constexpr int64_t kGruGates = 3;

struct GruSpec : SequenceSpec {
  // Throws Reject for nodes that are not supported.
  explicit GruSpec(const Node& node);

  bool reset_after = true;
  Activation activation = Activation::kTanh;
  Activation gate_activation = Activation::kSigmoid;
  bool hybrid = false;            // i8 weights beside an f32 input
  bool integer = false;           // i8 input
  bool constant_weights = false;  // operands 2 to 5
};

}  // namespace fusebox::rnn
