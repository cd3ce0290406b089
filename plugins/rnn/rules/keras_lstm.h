// SPDX-License-Identifier: Apache-2.0
// A Keras LSTM layer's composite (rules/keras_layer.h; states h and c, gates in the order i, f, c, o, bias
// [4u]) becomes one UNIDIRECTIONAL_SEQUENCE_LSTM; so does that of an IndyLSTM (indy_lstm_*), whose
// recurrent_kernel is [1,4u] and multiplies each unit's own state. That op can say the activations tanh,
// relu, relu6 and linear; its gates are sigmoid. For the others of cell/activation.h it is one fusebox.lstm
// (lstm/spec.h).
//
// With the plugin's option "lstm": "builtin" the rule declines those, so that the layer's loop of builtin ops
// stays, which any runtime for .tflite files has.
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
