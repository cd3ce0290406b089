// SPDX-License-Identifier: Apache-2.0
// The functions that a recurrent cell puts on its sums, by the names that Keras gives them.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>

namespace fusebox::rnn {

enum class CellActivation { kLinear, kRelu, kRelu6, kTanh, kSigmoid };

inline std::optional<CellActivation> CellActivationOf(std::string_view name) {
  if (name == "linear") return CellActivation::kLinear;
  if (name == "relu") return CellActivation::kRelu;
  if (name == "relu6") return CellActivation::kRelu6;
  if (name == "tanh") return CellActivation::kTanh;
  if (name == "sigmoid") return CellActivation::kSigmoid;
  return std::nullopt;
}

// NaN stays NaN.
template <class T>
T Activate(CellActivation activation, T x) {
  switch (activation) {
    case CellActivation::kLinear: return x;
    case CellActivation::kRelu: return x < T(0) ? T(0) : x;
    case CellActivation::kRelu6: return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
    case CellActivation::kTanh: return std::tanh(x);
    case CellActivation::kSigmoid: return T(1) / (T(1) + std::exp(-x));
  }
  return x;
}

}  // namespace fusebox::rnn
