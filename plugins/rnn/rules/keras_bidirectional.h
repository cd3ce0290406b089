// SPDX-License-Identifier: Apache-2.0
// Two Keras LSTM layers over one input, in opposite directions, become one BIDIRECTIONAL_SEQUENCE_LSTM. The
// converter forms the composite keras.bidirectional of them.
//
//   operands  inputs; then of the forward and of the backward layer: init_h, init_c, kernel, recurrent_kernel, bias (rules/keras_layer.h)
//   results   of the forward and of the backward layer: last_output, sequence (in the input's order; or the step that the layer
//             computed last, [B,1,u]), h, c; with the attribute merge then both sequences side by side
//   attrs     time_major, activation, recurrent_activation of both; merge (false)
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct KerasBidirectionalRule {
  static constexpr std::string_view id = "fusebox.keras_bidirectional", implements = "keras.bidirectional";
  static constexpr double atol = 1e-5, rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
