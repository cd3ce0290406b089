// SPDX-License-Identifier: Apache-2.0
// The checked sizes, variant and options of an LSTM node: UNIDIRECTIONAL_SEQUENCE_LSTM, LSTM, fusebox.lstm,
// or one direction of BIDIRECTIONAL_SEQUENCE_LSTM (cell/bidirectional.h; its time_major defaults to true).
//
// LSTM (of kernel type FULL) is one step: its input is [batch, inputs], its output [batch, outputs].
// fusebox.lstm is UNIDIRECTIONAL_SEQUENCE_LSTM with other activations, named by the options activation
// ("tanh") and recurrent_activation ("sigmoid") (common/activation.h). Its states are values: operands 18 and
// 19 are read, the results 1 and 2 are the final states. It has no clips and no integer form.
//
// Per step, with x the input and h, c the states (operands in brackets; absent terms are omitted):
//   gate(k) = act(norm(W[1+k] x + R[5+k] h + P[9+k] * c) * L[20+k] + b[12+k])    k = i, f, c, o; no P for c
//   c' = f * c + i * g, clipped to +-cell_clip          i = 1 - f when the input gate is absent (CIFG)
//   h' = o * act(c'), or clip(P[16] (o * act(c')) + b[17], proj_clip)            the peephole of o reads c'
// i, f, o are sigmoid, or the recurrent activation of fusebox.lstm; g and act(c') are the fused activation. R
// may be diagonal (1-D). norm, used with layer normalization only, scales to mean 0 and variance 1 (epsilon
// 1e-8).
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/kernel.h"
#include "plugins/rnn/simd/lstm.h"

namespace fusebox::rnn {

using namespace sdk;

// Operand numbers; the first of each group.
inline constexpr uint32_t kInput = 0;
inline constexpr uint32_t kInputWeights = 1;      // i, f, c, o: [cells, inputs]
inline constexpr uint32_t kRecurrentWeights = 5;  // i, f, c, o: [cells, outputs], or [cells] when diagonal
inline constexpr uint32_t kPeephole = 9;          // i, f, o: [cells]
inline constexpr uint32_t kGateBias = 12;         // i, f, c, o: [cells]
inline constexpr uint32_t kProjection = 16;       // [outputs, cells]
inline constexpr uint32_t kProjectionBias = 17;   // [outputs]
inline constexpr uint32_t kOutputState = 18;      // batch * outputs elements
inline constexpr uint32_t kCellState = 19;        // batch * cells elements
inline constexpr uint32_t kLayerNorm = 20;        // i, f, c, o: [cells]

// kFloat: all operands are f32, or all f64. kHybrid: f32 with i8 weights (1-8, 16, optionally 9-11).
// kInteger: input, output, output state and weights are i8, cell state, peepholes and norm coefficients i16,
// biases i32.
enum class Arithmetic { kFloat, kHybrid, kInteger };

struct LstmSpec : SequenceSpec {
  // Throws Reject for nodes that are not supported.
  explicit LstmSpec(const Node& node);

  int64_t outputs = -1;
  bool states_are_values = false;  // the op is fusebox.lstm
  bool cifg = false;
  bool peephole = false;
  bool projection = false;
  bool layer_norm = false;
  bool diagonal = false;
  Activation activation = Activation::kTanh;
  Activation gate_activation = Activation::kSigmoid;
  double cell_clip = 0;  // 0: none
  double projection_clip = 0;
  Arithmetic arithmetic = Arithmetic::kFloat;

  bool constant_weights = false;  // operands 1-8, 12-15 as far as present
  int64_t width() const { return outputs; }
  bool HasGate(uint32_t k) const { return !(cifg && k == kInGate); }
  // The variant of Keras: four gates, nothing optional.
  bool plain() const { return !cifg && !peephole && !projection && !layer_norm && !diagonal; }

 private:
  void ReadOptions(const Node& node);
  void ReadVariant(const Node& node);
  void FitSizes(const Node& node);
};

}  // namespace fusebox::rnn
