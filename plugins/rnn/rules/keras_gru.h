// SPDX-License-Identifier: Apache-2.0
// A Keras GRU layer's composite (rules/keras_layer.h; one state, gates in the order z, r, h) becomes one
// fusebox.gru.
//
// Attribute reset_after: is the reset gate applied to the recurrent product, and the bias [2,3u] (one row for
// the input, one for the state)? Else it is applied to the state, and the bias is [3u]. Where it is absent,
// the bias tells. With the plugin's option "gru": "builtin" the rule declines, so that the layer's loop of
// builtin ops stays, which any runtime for .tflite files has.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct KerasGruRule {
  static constexpr std::string_view id = "fusebox.keras_gru", implements = "gru_*";
  // A large state is scaled by a gate, whose argument is then a large sum: its rounding shows in the gate's
  // last digits.
  static constexpr double atol = 1e-5, rtol = 1e-4;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
