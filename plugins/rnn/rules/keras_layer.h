// SPDX-License-Identifier: Apache-2.0
// What the composites of Keras' recurrent layers have in common, and the checks that their rules share.
//
//   operands  inputs [B,T,n] ([T,B,n] with time_major), the initial states [B,u], kernel [n,G*u],
//             recurrent_kernel [u,G*u], bias ([G*u], or as the cell says); then maybe a mask, bool [B,T] (or [T,B])
//   results   last_output [B,u], sequence [B,T,u] (or [B,1,u]: the last step only), the final states [B,u];
//             then maybe a scalar that says which implementation of Keras ran
//   attrs     time_major (false), go_backwards (false: else the input is read from its last step to its first),
//             activation ("tanh"), recurrent_activation ("sigmoid"), sequence (is the second result the whole sequence;
//             its shape tells where this is absent), with a mask zero_output_for_mask (what steps give that it leaves out:
//             zeros, or what the step before gave)
//
// All f32. The weights must be constant; the initial states may be whatever ops compute, B and T may be
// unknown.
#pragma once

#include <string>
#include <string_view>

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

// A time step of a sequence: its last, or its first. A slice, not the final state, so that files that nobody
// asks for a state read no variable tensor: other runtimes and their delegates know this form.
Value StepOf(Build& build, Value sequence, int time_axis, bool last, bool keep_axis);

// Where a layer stands that is one of two in a composite, and what is special with it. How far its operands
// (but for the inputs, which both read) and results are behind those of a layer alone.
struct LayerPlace {
  const char* name = "";  // "backward "
  uint32_t operands = 0, results = 0;
  bool diagonal = false;  // recurrent_kernel is [1,G*u]: each unit knows its own state only
};

class KerasLayer {
 public:
  KerasLayer(const Site& site, uint32_t states, int64_t gates, LayerPlace place = {})
      : site_(site), states_(states), gates_(gates), place_(place) {}

  static constexpr uint32_t kInputs = 0;
  uint32_t first_state() const { return place_.operands + 1; }
  uint32_t kernel() const { return first_state() + states_; }
  uint32_t recurrent() const { return kernel() + 1; }
  uint32_t bias() const { return kernel() + 2; }
  uint32_t mask() const { return kernel() + 3; }
  bool masked() const { return site_.in_count() > mask(); }  // of a layer alone
  uint32_t last_output() const { return place_.results; }
  uint32_t sequence() const { return place_.results + 1; }
  uint32_t first_final_state() const { return place_.results + 2; }
  std::string subject(uint32_t operand) const;  // "operand 3 (kernel)"

  bool time_major() const { return site_.attrs().b("time_major", false); }
  int time_axis() const { return time_major() ? 0 : 1; }
  bool go_backwards() const { return site_.attrs().b("go_backwards", false); }
  std::string_view activation() const { return site_.attrs().s("activation", "tanh"); }
  std::string_view recurrent_activation() const { return site_.attrs().s("recurrent_activation", "sigmoid"); }
  bool diagonal() const { return place_.diagonal; }
  int64_t units() const {
    return diagonal() ? site_.in(recurrent()).dim(1) / gates_ : site_.in(recurrent()).dim(0);
  }

  // Each throws Reject. In this order: later ones read what earlier ones have checked.
  void CheckArity() const;  // of a layer alone
  void CheckOperand(uint32_t operand, int rank) const;
  void CheckConstant(uint32_t operand) const;
  // Inputs, states, kernel and recurrent kernel: type, rank and constness; the bias is the cell's own.
  void CheckOperands() const;
  void CheckKernels() const;
  void CheckBias(int dimension) const;  // gates * units long there
  void CheckStates() const;
  void CheckSequence() const;
  void CheckMask() const;         // of a layer alone
  void CheckActivations() const;  // both are those of an op of ours (cell_activation.h)

  // The operand in the order in which the cell reads it.
  Value Inputs(Build& build) const;
  // Newer Keras declares the sequence as one step long when only the last output is wanted.
  bool SequenceIsLast() const;
  // Last output and sequence from the whole sequence, and the scalar, of a layer alone. `unread`, if any, is
  // the last output where nobody reads it: it needs no slice then, and bodies are kept of what became one op.
  void SetOutputs(Build& build, Value sequence, Value unread = none) const;

 private:
  const Site& site_;
  uint32_t states_;
  int64_t gates_;
  LayerPlace place_;
};

}  // namespace fusebox::rnn
