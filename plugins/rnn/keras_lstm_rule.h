// SPDX-License-Identifier: Apache-2.0
// A Keras LSTM layer's composite becomes one UNIDIRECTIONAL_SEQUENCE_LSTM.
//
//   operands  inputs [B,T,n] ([T,B,n] with time_major), init_h [B,u], init_c [B,u],
//             kernel [n,4u], recurrent_kernel [u,4u], bias [4u]; gates in the order i, f, c, o
//   results   last_output [B,u], sequence [B,T,u] (or [B,1,u]: the last step only), h [B,u], c [B,u], runtime []
//   attrs     time_major (false), go_backwards (false: else the input is read from its last step to its first)
//
// All f32. The weights must be constant; the initial states may be whatever ops compute, B and T may be unknown.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct KerasLstmRule {
  static constexpr std::string_view id = "fusebox.keras_lstm", implements = "lstm_*";
  static constexpr double atol = 1e-5, rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
