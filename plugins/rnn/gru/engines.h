// SPDX-License-Identifier: Apache-2.0
// The engines of fusebox.gru; gru/kernel.cc chooses.
#pragma once

#include <algorithm>
#include <memory>

#include "plugins/rnn/gru/kernel.h"

namespace fusebox::rnn {

// The pointers of one run. T: float or double.
template <class T>
struct GruBuffers {
  explicit GruBuffers(const Node& node) : output(node.out(0).data<T>()), state(node.out(1).data<T>()) {
    for (uint32_t i = 0; i < kGruOperands; ++i)
      operands[i] = node.has_in(i) && !IsInt8(node, i) ? node.in(i).data<const T>() : nullptr;
    std::copy_n(operands[kGruState], node.in(kGruState).count(), state);
  }

  const T* operands[kGruOperands] = {};  // null: absent, or i8
  T* output;
  T* state;  // [batch, cells]: initial on entry, final on return
};

// The definition of the op, f32 and f64, with weights as in the file.
std::unique_ptr<const GruEngine> MakeReferenceGru(const GruSpec& spec);
// f32 with constant weights, packed for the vector code (simd/panels.h).
std::unique_ptr<const GruEngine> MakePackedGru(const GruSpec& spec, const Node& node);
// i8 weights (cell/hybrid_product.h). Input, state and, without reset_after, the reset state are quantized
// before the products.
std::unique_ptr<const GruEngine> MakeHybridGru(const GruSpec& spec, const Node& node);
// i8 throughout: constant symmetric weights of one scale, biases in the scale of their products, one scale
// and zero point for both states and the sequence. Within a run the state has 16 bits; products read it in 8.
std::unique_ptr<const GruEngine> MakeIntegerGru(const GruSpec& spec, const Node& node);
// Throws Reject for integer nodes that are not supported.
void CheckIntegerGru(const GruSpec& spec, const Node& node);

}  // namespace fusebox::rnn
