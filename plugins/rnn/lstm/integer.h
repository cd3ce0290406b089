// SPDX-License-Identifier: Apache-2.0
// The cell in integers: input, output and output state of 8 bits, cell state of 16 (its scale a power of
// two), gates of 16.
//
// To the bit what TFLite 2.9 computes, which subtracts the output's zero point where a quantized tensor's
// meaning would have it added. Before its activation a gate has 12 bits of fraction, after it 15. Activations
// are tanh. With layer normalization or projection the node's intermediate tensors must say the scales of
// what is computed on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/fixed_point.h"
#include "plugins/rnn/lstm/fixed_norm.h"
#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

class IntegerLstm {
 public:
  // Throws Reject for what is not done: scales that are missing or do not fit together, computed weights.
  static void Check(const LstmSpec& spec, const Node& node);
  IntegerLstm(const LstmSpec& spec, const Node& node);

  struct Buffers {
    const int8_t* input;
    int8_t *output, *output_state;
    int16_t* cell_state;
  };
  static size_t ScratchBytes(const LstmSpec& spec);  // of one call of Run
  // Runs all steps of the batch rows [begin, end).
  void Run(const LstmSpec& spec, const Buffers& buffers, int64_t begin, int64_t end,
           std::byte* scratch) const;

 private:
  // sums = by * (values x + bias); the bias holds what the vector's zero point adds.
  struct Matrix {
    const int8_t* values = nullptr;
    int64_t rows = 0, columns = 0;
    std::vector<int32_t> bias;
    FixedPoint by;
    int32_t Sum(int64_t row, const int8_t* x) const;
  };
  struct GateWeights {
    Matrix input, recurrent;
    const int16_t* peephole = nullptr;
    FixedPoint peephole_by;
    FixedNorm norm;
  };
  Matrix MatrixOf(const Node& node, uint32_t operand, const int32_t* bias, int64_t zero_point,
                  float scale) const;
  GateWeights GateOf(const LstmSpec& spec, const Node& node, Gate k) const;
  void Step(const LstmSpec& spec, const int8_t* x, int8_t* h, int16_t* c, int16_t* scratch) const;
  void RunGate(const LstmSpec& spec, Gate k, const int8_t* x, const int8_t* h, const int16_t* c,
               int16_t* values) const;

  GateWeights gates_[kGates];
  int32_t cell_bits_ = 0;  // of the cell state's fraction
  int32_t cell_clip_ = 0;  // 0: none
  FixedPoint hidden_by_;
  int32_t hidden_zero_ = 0;
  Matrix projection_;
  int32_t output_zero_ = 0;      // of the projection
  int32_t projection_clip_ = 0;  // 0: none
};

}  // namespace fusebox::rnn
