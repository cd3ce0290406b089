// SPDX-License-Identifier: Apache-2.0
// The fusion rules. keras_layer.h has operands and results of the Keras composites.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

using namespace sdk;

// A Keras LSTM layer (states h and c, gates in the order i, f, c, o, bias [4u]) becomes one
// UNIDIRECTIONAL_SEQUENCE_LSTM; so does an IndyLSTM (indy_lstm_*), whose recurrent_kernel is [1,4u] and
// multiplies each unit's own state. That op supports the activations tanh, relu, relu6 and linear, and
// sigmoid gates. For other activations (common/activation.h) the layer becomes one fusebox.lstm
// (lstm/spec.h).
//
// With the plugin option "lstm": "builtin" the rule declines those, and the layer's loop of builtin ops,
// which every TFLite runtime supports, remains.
struct KerasLstmRule {
  static constexpr std::string_view id = "fusebox.keras_lstm";
  static constexpr std::string_view implements = "lstm_*";
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// A Keras GRU layer (one state, gates in the order z, r, h) becomes one fusebox.gru.
//
// Attribute reset_after: true if the reset gate is applied to the recurrent product and the bias is [2,3u] (a
// row for the input, a row for the state); false if it is applied to the state and the bias is [3u]. The
// default depends on the rank of the bias. With the plugin option "gru": "builtin" the rule declines, and the
// layer's loop of builtin ops remains.
struct KerasGruRule {
  static constexpr std::string_view id = "fusebox.keras_gru";
  static constexpr std::string_view implements = "gru_*";
  // A large state is scaled by a gate with a large argument, whose rounding shows in the gate's last digits.
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-4;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// A Keras SimpleRNN layer (one state, kernel [n,u], recurrent_kernel [u,u], bias [u]) becomes one
// UNIDIRECTIONAL_SEQUENCE_RNN. Activations: tanh, relu, relu6, linear.
struct KerasSimpleRnnRule {
  static constexpr std::string_view id = "fusebox.keras_simple_rnn";
  static constexpr std::string_view implements = "keras.simple_rnn";
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// A Keras ConvLSTM layer of 1, 2 or 3 spatial dimensions, channels last, becomes one fusebox.conv_lstm.
//
//   operands  inputs [B,T,S..,n], the initial states h and c [B,P..,u], kernel [K..,n,4u], recurrent_kernel [K..,u,4u], bias
//             [4u], gates in the order i, f, c, o; optionally a mask, bool [B,T] or [B,T,P..]
//   results   last_output [B,P..,u], sequence [B,T,P..,u] (or [B,1,P..,u]: the last step only), the final states
//   attrs     as of fusebox.conv_lstm (conv_lstm/spec.h)
//
// With the plugin option "conv_lstm": "builtin" the rule declines, and the layer's loop of builtin ops
// remains.
struct KerasConvLstmRule {
  static constexpr std::string_view id = "fusebox.keras_conv_lstm";
  static constexpr std::string_view implements = "keras.conv_lstm";
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// Two Keras LSTM layers over one input, in opposite directions, become one BIDIRECTIONAL_SEQUENCE_LSTM. The
// converter forms the composite keras.bidirectional.
//
//   operands  inputs; then of the forward and of the backward layer: init_h, init_c, kernel, recurrent_kernel, bias
//   results   of the forward and of the backward layer: last_output, sequence (in the order of the input; or the step that
//             the layer computed last, [B,1,u]), h, c; with the attribute merge then both sequences concatenated
//   attrs     time_major, activation, recurrent_activation of both; merge (false)
struct KerasBidirectionalRule {
  static constexpr std::string_view id = "fusebox.keras_bidirectional";
  static constexpr std::string_view implements = "keras.bidirectional";
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

// An LSTM cell of Lingvo (lingvo_cell.h) becomes one LSTM op.
struct LingvoLstmRule {
  static constexpr std::string_view id = "fusebox.lingvo_lstm";
  static constexpr std::string_view implements = "LSTMCellSimple*";
  static constexpr double atol = 1e-5;
  static constexpr double rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
