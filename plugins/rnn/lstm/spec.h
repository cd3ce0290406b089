// SPDX-License-Identifier: Apache-2.0
// What a UNIDIRECTIONAL_SEQUENCE_LSTM, LSTM or fusebox.lstm node says: its sizes, variant and options,
// checked. LSTM (of kernel type FULL) is one step: its input is [batch, inputs], its output [batch, outputs].
// fusebox.lstm is UNIDIRECTIONAL_SEQUENCE_LSTM with other activations: the options activation ("tanh") and
// recurrent_activation ("sigmoid") name them (cell/activation.h). Its states are values: operands 18 and 19
// are read, the results 1 and 2 are the final states. It has no clips and no form in integers.
//
// Per step, with x the input and h, c the states (operands in brackets; absent terms are left out):
//   gate(k) = act(norm(W[1+k] x + R[5+k] h + P[9+k] * c) * L[20+k] + b[12+k])    k = i, f, c, o; no P for c
//   c' = f * c + i * g, clipped to +-cell_clip          i = 1 - f when the input gate is absent (CIFG)
//   h' = o * act(c'), or clip(P[16] (o * act(c')) + b[17], proj_clip)            the o gate's peephole sees c'
// i, f, o are sigmoid, or of fusebox.lstm its recurrent activation; g and act(c') are the fused activation. R
// may be diagonal (1-D). norm is to mean 0 and variance 1 (epsilon 1e-8) and is there only with layer
// normalization.
#pragma once

#include <cstdint>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/activation.h"

namespace fusebox::rnn {

// Numbers of the operands, of the first of several.
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

enum Gate : uint32_t { kInGate, kForgetGate, kCellGate, kOutGate, kGates };

// kFloat: every operand is f32, or every one f64. kHybrid: f32 with weights of 8 bits (1-8, 16, and 9-11 or
// not). kInteger: input, output, output state and weights of 8 bits, cell state, peepholes and norm
// coefficients of 16, biases of 32.
enum class Arithmetic { kFloat, kHybrid, kInteger };

struct LstmSpec {
  // Throws Reject for what is not done or does not fit together. Sizes that are not known yet are -1 and fit.
  // `time_major`: what the op means where it does not say.
  explicit LstmSpec(const Node& node, bool time_major = false);

  int64_t batch = -1, steps = -1, inputs = -1, cells = -1, outputs = -1;
  bool one_step = false;           // the op is LSTM
  bool states_are_values = false;  // the op is fusebox.lstm
  bool time_major = false;
  bool cifg = false, peephole = false, projection = false, layer_norm = false, diagonal = false;
  CellActivation activation = CellActivation::kTanh, gate_activation = CellActivation::kSigmoid;
  double cell_clip = 0, projection_clip = 0;  // 0: none
  Arithmetic arithmetic = Arithmetic::kFloat;
  fbx_dtype dtype = FBX_F32;  // of input and output

  bool constant_weights = false;  // operands 1-8, 12-15 as far as present
  // The variant of Keras: every gate, nothing optional, nothing quantized.
  bool plain() const {
    return arithmetic == Arithmetic::kFloat && !cifg && !peephole && !projection && !layer_norm && !diagonal;
  }

 private:
  void ReadFunctions(const Node& node);
};

}  // namespace fusebox::rnn
