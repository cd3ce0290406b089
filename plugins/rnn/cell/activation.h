// SPDX-License-Identifier: Apache-2.0
// The functions that a recurrent cell puts on its sums, by the names that Keras gives them. Hard sigmoids are
// clipped to 0 and 1: x / 5 + 1 / 2, and x / 6 + 1 / 2 since Keras 3.
#pragma once

#include <cmath>
#include <optional>
#include <string_view>

namespace fusebox::rnn {

enum class CellActivation {
  kLinear,
  kRelu,
  kReluN1To1,
  kRelu6,
  kTanh,
  kSigmoid,
  kHardSigmoid,
  kHardSigmoidOfKeras3
};

inline std::optional<CellActivation> CellActivationOf(std::string_view name) {
  if (name == "linear") return CellActivation::kLinear;
  if (name == "relu") return CellActivation::kRelu;
  if (name == "relu6") return CellActivation::kRelu6;
  if (name == "tanh") return CellActivation::kTanh;
  if (name == "sigmoid") return CellActivation::kSigmoid;
  if (name == "hard_sigmoid") return CellActivation::kHardSigmoid;
  if (name == "hard_sigmoid_of_keras_3") return CellActivation::kHardSigmoidOfKeras3;
  return std::nullopt;
}

// Is it 0 for all sums that are small enough, and 1 for all that are large enough?
inline bool ReachesBounds(CellActivation activation) {
  return activation == CellActivation::kSigmoid || activation == CellActivation::kHardSigmoid ||
         activation == CellActivation::kHardSigmoidOfKeras3;
}

template <class T>
T ClampUnit(T x) {
  return x < T(0) ? T(0) : x > T(1) ? T(1) : x;
}

// NaN stays NaN.
template <class T>
T Activate(CellActivation activation, T x) {
  switch (activation) {
    case CellActivation::kLinear: return x;
    case CellActivation::kRelu: return x < T(0) ? T(0) : x;
    case CellActivation::kReluN1To1: return x < T(-1) ? T(-1) : x > T(1) ? T(1) : x;
    case CellActivation::kRelu6: return x < T(0) ? T(0) : x > T(6) ? T(6) : x;
    case CellActivation::kTanh: return std::tanh(x);
    case CellActivation::kSigmoid: return T(1) / (T(1) + std::exp(-x));
    case CellActivation::kHardSigmoid: return ClampUnit(x * T(0.2) + T(0.5));
    case CellActivation::kHardSigmoidOfKeras3: return ClampUnit(x / T(6) + T(0.5));
  }
  return x;
}

}  // namespace fusebox::rnn
