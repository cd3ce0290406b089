// SPDX-License-Identifier: Apache-2.0
// The common form of the composites of recurrent Keras layers, and the checks that their rules share.
//
//   operands  inputs [B,T,n] ([T,B,n] with time_major), the initial states [B,u], kernel [n,G*u],
//             recurrent_kernel [u,G*u], bias ([G*u], or as the cell defines); optionally a mask, bool [B,T] (or [T,B])
//   results   last_output [B,u], sequence [B,T,u] (or [B,1,u]: the last step only), the final states [B,u];
//             optionally a scalar: the implementation that Keras used
//   attrs     time_major (false), go_backwards (false; true: the input is read from its last step to its first),
//             activation ("tanh"), recurrent_activation ("sigmoid"), sequence (true if the second result is the whole
//             sequence; default: from its shape), with a mask zero_output_for_mask (true: masked steps output zeros; false:
//             they repeat the output before)
//
//             asymmetric_quantize_inputs (false): with 8-bit kernels, x and h are quantized with a zero point
//
// All f32, or kernel and recurrent_kernel i8 without a mask. The weights must be constant; initial states may
// be computed, B and T may be unknown.
#pragma once

#include <string>
#include <string_view>

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

using namespace sdk;

// The last or first time step of a sequence. A slice, not the final state, so that files without a used state
// read no variable tensor: other runtimes and their delegates support this form.
Value StepOf(Build& build, Value sequence, int time_axis, bool last, bool keep_axis);

// The position of a layer that is one of two in a composite. `operands` and `results` are offsets from the
// numbers of a single layer (the inputs are shared).
struct LayerPosition {
  const char* name = "";  // "backward "
  uint32_t operands = 0;
  uint32_t results = 0;
  bool diagonal = false;  // recurrent_kernel is [1,G*u]: each unit reads its own state only
};

class KerasLayer {
 public:
  KerasLayer(const Site& site, uint32_t states, int64_t gates, LayerPosition position = {})
      : site_(site), states_(states), gates_(gates), position_(position) {}

  static constexpr uint32_t kInputs = 0;
  uint32_t first_state() const { return position_.operands + 1; }
  uint32_t kernel() const { return first_state() + states_; }
  uint32_t recurrent() const { return kernel() + 1; }
  uint32_t bias() const { return kernel() + 2; }
  uint32_t mask() const { return kernel() + 3; }
  bool masked() const { return site_.in_count() > mask(); }  // of a single layer
  uint32_t last_output() const { return position_.results; }
  uint32_t sequence() const { return position_.results + 1; }
  uint32_t first_final_state() const { return position_.results + 2; }
  std::string subject(uint32_t operand) const;  // "operand 3 (kernel)"

  bool time_major() const { return site_.attrs().b("time_major", false); }
  int time_axis() const { return time_major() ? 0 : 1; }
  bool go_backwards() const { return site_.attrs().b("go_backwards", false); }
  std::string_view activation() const { return site_.attrs().s("activation", "tanh"); }
  std::string_view recurrent_activation() const { return site_.attrs().s("recurrent_activation", "sigmoid"); }
  bool asymmetric() const { return site_.attrs().b("asymmetric_quantize_inputs", false); }
  bool diagonal() const { return position_.diagonal; }
  int64_t units() const {
    return diagonal() ? site_.in(recurrent()).dim(1) / gates_ : site_.in(recurrent()).dim(0);
  }

  // Each throws Reject. Call them in this order: later ones rely on earlier ones.
  void CheckArity() const;  // of a single layer
  void CheckOperand(uint32_t operand, int rank) const;
  void CheckConstant(uint32_t operand) const;
  void CheckWeights(uint32_t operand) const;  // of f32 or i8, both kernels alike
  // Type, rank and constness of inputs, states, kernel and recurrent kernel.
  void CheckOperands() const;
  void CheckKernels() const;
  void CheckBias(int dimension) const;  // of gates * units
  void CheckStates() const;
  void CheckSequence() const;
  void CheckMask() const;  // of a single layer
  // All from CheckOperands to CheckSequence, for a constant bias [gates * units].
  void CheckLayer() const;
  void CheckActivations() const;  // as fusebox.lstm and fusebox.gru have (common/activation.h)

  // The activation as a value of fused_activation_function. Throws Reject if there is none.
  std::string_view builtin_activation() const;
  // True if the builtin LSTM ops support both activations of an LSTM layer.
  bool HasBuiltinActivations() const;

  // The inputs in the order in which the cell reads them.
  Value Inputs(Build& build) const;
  // Newer Keras declares a sequence of one step if only the last output is used.
  bool SequenceIsLast() const;
  // Sets last output and sequence from the whole sequence, and the scalar, of a single layer. `unused`, if
  // any, becomes the last output if that is not used, so that it needs no slice.
  void SetOutputs(Build& build, Value sequence, Value unused = no_value) const;

  // LSTM layers: sets input weights, recurrent weights and biases in the order of the op's operands 1 to 17.
  // Peephole (9 to 11) and projection (16, 17) are absent.
  void SetLstmWeights(Build& build, Value* operands) const;

 private:
  const Site& site_;
  uint32_t states_;
  int64_t gates_;
  LayerPosition position_;
};

}  // namespace fusebox::rnn
