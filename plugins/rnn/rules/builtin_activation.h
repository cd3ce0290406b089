// SPDX-License-Identifier: Apache-2.0
// Keras' activations as the builtin RNN ops name them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fusebox/base.hpp>

namespace fusebox::rnn {

// Nullopt for one that fused_activation_function cannot say.
inline std::optional<std::string_view> BuiltinActivationOf(std::string_view keras) {
  if (keras == "tanh") return "TANH";
  if (keras == "relu") return "RELU";
  if (keras == "relu6") return "RELU6";
  if (keras == "linear") return "NONE";
  return std::nullopt;
}

// The same; throws Reject instead.
inline std::string_view BuiltinActivation(std::string_view keras) {
  if (const auto name = BuiltinActivationOf(keras)) return *name;
  throw Reject{"ATTR", "is " + std::string(keras) + ", which the fused op cannot say", "attr activation"};
}

}  // namespace fusebox::rnn
