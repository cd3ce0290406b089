// SPDX-License-Identifier: Apache-2.0
// A Keras SimpleRNN layer's composite (rules/keras_layer.h; one state, kernel [n,u], recurrent_kernel [u,u],
// bias [u]) becomes one UNIDIRECTIONAL_SEQUENCE_RNN. Activations: tanh, relu, relu6, linear.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct KerasSimpleRnnRule {
  static constexpr std::string_view id = "fusebox.keras_simple_rnn", implements = "keras.simple_rnn";
  static constexpr double atol = 1e-5, rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
