// SPDX-License-Identifier: Apache-2.0
// Constraints of each op on the scales of its operands and results in 8 bits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {

inline Quantizes Role(const Node& node) { return Info(node.op).quantizes; }
// The operand whose data a kSame op moves.
inline size_t DataOperand(const Node& node) { return static_cast<size_t>(Info(node.op).operands.data); }

// Returns the roles of the operands: columns of ops.def, or for custom ops the manifest of the plugin with
// the best kernel. Returns nullopt if no manifest has them. `rows`: of Scheme.
std::optional<OpQuantization> RolesOf(Registry&, const Node&, bool rows = false);
// Returns kNoValue if the node has no such operand.
inline ValueId OperandOf(const Node& node, size_t i) {
  return i < node.operands.size() ? node.operands[i] : kNoValue;
}
// Returns the value whose scale the group has: its first computed f32 result, else operand. Returns kNoValue
// if there is none.
ValueId LeadOf(const Function&, const Node&, const OpQuantization::SameScale&);
// Returns why the constant has no scale for each index of `axis`, or "" if it has, or if axis is -1.
std::string WhyNoAxis(const Value& weights, int axis);
// A bias below this, in steps, fits 32 bits together with the sums.
inline constexpr double kLargestBias = 1 << 30;

// By node: why it stays f32; "": needs no note.
using Reasons = std::map<const Node*, std::string>;

// ---- choose8.cc

// Nodes that stay f32: those that cannot run in 8 bits, and those that would not benefit. All others run in 8
// bits.
Reasons StayFloat(const Function&, Reasons refused);

// ---- scales8.cc: groups of values with equal scale, and the scale of each group

// Returns the scale of an activation: i8, asymmetric, or i16, symmetric. The range includes zero.
std::shared_ptr<const Quant> ActivationScale(const Range&, DType);

// The function's nodes must not change during construction; `floats` must outlive the object.
class Scales {
 public:
  Scales(Registry&, const Function&, const Ranges&, const Reasons& floats, DType activations);
  // Returns null if the value has no scale.
  std::shared_ptr<const Quant> Of(ValueId);
  // Why not: it was not observed, or its range is too wide for the steps. Else "".
  std::string WhyNot(ValueId);
  // The value that stands for its group.
  ValueId Root(ValueId);
  // The format fixes the scale of the group.
  bool IsFixed(ValueId v) { return fixed_.contains(Root(v)); }

 private:
  std::shared_ptr<const Quant> Known(ValueId root);
  void Tie(ValueId, ValueId);
  bool IsActivation(ValueId v) const { return v != kNoValue && groups_.contains(v); }
  void TieResults(const Node&);
  void TieOutputState(const Node&);
  void TieResults(const Node&, const OpQuantization::SameScale&);
  void TieOperands(const Node&, ValueId to, std::span<const ValueId> operands);
  bool HasItsOwn(ValueId);
  bool IsOnlyFor(ValueId, const Node&) const;

  const Function& f_;
  const Uses uses_;
  const Reasons& floats_;
  const DType activations_;
  Ranges groups_;  // by root
  std::map<ValueId, ValueId> parent_;
  std::map<ValueId, std::shared_ptr<const Quant>> fixed_, quants_;
  std::set<ValueId> recurrent_, symmetric_;  // groups with an LSTM's output
};

// ---- weights8.cc

// The scale that an activation of the node will have, by operand; 0: none.
using OperandScales = std::function<double(size_t operand)>;
// Returns why the weights and biases stay f32, or "" if they need not.
std::string WhyNoWeights(const Function&, const Node&, const OpQuantization&, const OperandScales&);
// Stores them as integers: weights per channel, biases in the scale of the sums. Returns an error text or "".
std::string QuantizeProductWeights(Function&, Node&, const OpQuantization&, const OperandScales&,
                                   DType activations);

// ---- lstm8.cc

// Operand indices; per gate in the order input, forget, cell, output. The cell gate has no peephole.
inline constexpr size_t kInputWeights = 1;
inline constexpr size_t kRecurrentWeights = 5;
inline constexpr size_t kPeephole = 9;
inline constexpr size_t kBias = 12;
inline constexpr size_t kProjection = 16;
inline constexpr size_t kProjectionBias = 17;
inline constexpr size_t kLstmOutputState = 18;
inline constexpr size_t kLstmCellState = 19;
inline constexpr size_t kLayerNorm = 20;
inline constexpr size_t kLstmGates = 4;
// The intermediate with the scale of the projection's input. Those before it: the gates' sums before layer
// normalization.
inline constexpr size_t kLstmHidden = 4;

// Stores all constant operands as integers and adds the intermediates; returns an error text or "". Without
// projection, the last intermediate has the scale of `output`. The caller converts the op's input, states and
// results.
std::string QuantizeLstmWeights(Function&, Node&, const LstmRanges&, const Quant& input,
                                const std::shared_ptr<const Quant>& output);
// Warning for users of TFLite about such an LSTM; else "".
std::string LstmWarning(const Function&, const Node&);
// Scale of a cell state: 16 bits, a power of two.
std::shared_ptr<const Quant> CellStateScale(const Range&);
// Symmetric i8; the largest value reaches 127 steps, also in f32.
std::shared_ptr<const Quant> SymmetricScale(const Range&);
// Returns whether the op's output requires zero point 0.
bool NeedsSymmetricOutput(const Node& lstm);
// The initial state `from` as integers, in a tensor that the op may update. Appends the producing nodes.
ValueId QuantizeState(Function&, ValueId from, DType, const std::shared_ptr<const Quant>&);

// ---- lstm_sums.cc

struct LstmSum {
  size_t intermediate;  // index of the intermediate
  ValueId value;
};
// Appends ops that compute the internal values of a one-step f32 LSTM whose ranges the integer form needs.
// `h` [batch, outputs] and `c` [batch, cells]: states before the step.
std::vector<LstmSum> AddLstmSums(Function&, const Node& lstm, ValueId h, ValueId c);

}  // namespace fusebox::converter::quantize
