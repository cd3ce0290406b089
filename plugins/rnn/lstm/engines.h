// SPDX-License-Identifier: Apache-2.0
// The engines of the LSTM kernels (lstm/kernel.cc chooses), and the checks of quantized nodes.
#pragma once

#include <memory>

#include "plugins/rnn/lstm/kernel.h"

namespace fusebox::rnn {

// The pointers of one run. T: float or double.
template <class T>
struct LstmBuffers {
  explicit LstmBuffers(const Node& node)
      : output(node.out(0).data<T>()),
        output_state(StateMemory<T>(node, kOutputState, 1)),
        cell_state(StateMemory<T>(node, kCellState, 2)) {
    for (uint32_t i = 0; i < node.in_count(); ++i)
      operands[i] = node.has_in(i) && !IsInt8(node, i) ? node.in(i).data<const T>() : nullptr;
  }

  const T* operands[24] = {};  // null: absent, or i8
  T* output;
  T* output_state;  // [batch, outputs]: initial on entry, final on return
  T* cell_state;    // [batch, cells]: the same
};

// Every float variant by its definition, f32 and f64, with weights as in the file.
std::unique_ptr<const LstmEngine> MakeReferenceLstm(const LstmSpec& spec);

// Plain f32 with constant weights, packed for the vector code (simd/lstm.h).
std::unique_ptr<const LstmEngine> MakePackedLstm(const LstmSpec& spec, const Node& node);

// i8 weights (cell/hybrid_product.h), asymmetric with asymmetric_quantize_inputs.
void CheckHybridLstm(const Node& node);
std::unique_ptr<const LstmEngine> MakeHybridLstm(const LstmSpec& spec, const Node& node);
// Four gates without peephole, projection or normalization, with constant biases.
std::unique_ptr<const LstmEngine> MakePackedHybridLstm(const LstmSpec& spec, const Node& node);

// Integers only: input, output and output state i8, cell state i16 (its scale a power of two), gates i16.
// Bit-exact with TFLite 2.9, which subtracts the zero point of the output where the definition of quantized
// tensors requires an addition. A gate has 12 fractional bits before its activation, 15 after it. The
// activation is tanh. With layer normalization or projection the node needs intermediate tensors with the
// scales of the values inside the op.
void CheckIntegerLstm(const LstmSpec& spec, const Node& node);
std::unique_ptr<const LstmEngine> MakeIntegerLstm(const LstmSpec& spec, const Node& node);

}  // namespace fusebox::rnn
