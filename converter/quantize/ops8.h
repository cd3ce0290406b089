// SPDX-License-Identifier: Apache-2.0
// What each op asks of the scales of its operands and results when it computes in 8 bits.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {

inline Quantizes Role(const Node& node) { return Info(node.op).quantizes; }
// The operand whose data kSame moves.
inline size_t DataOperand(const Node& node) { return static_cast<size_t>(Info(node.op).operands.data); }

struct WeightedForm {
  size_t input, weights, bias;
  int axis;  // of the weights' scales; -1: one scale
};
// Of Quantizes::kWeighted; nothing for others.
std::optional<WeightedForm> FormOf(const Node&);
// Below this a bias, in steps, is sure to fit 32 bits beside the sums.
inline constexpr double kLargestBias = 1 << 30;

// By node: why it stays f32; "" goes without saying.
using Reasons = std::map<const Node*, std::string>;

// ---- choose8.cc

// Which nodes stay f32: those that cannot be of 8 bits, and those that are better off with them. All others
// compute in 8 bits.
Reasons StayFloat(const Function&, Reasons refused);

// ---- scales8.cc: which values have one scale, and what each scale is

// i8 for a range that holds zero.
std::shared_ptr<const Quant> AsymmetricScale(const Range&);

// The function's nodes must stay until it is made; `floats` for longer.
class Scales {
 public:
  Scales(const Function&, const Ranges&, const Reasons& floats);
  // Null where the value has none.
  std::shared_ptr<const Quant> Of(ValueId);
  // Why: it was never seen, or spans more than makes sense in 256 steps. Else "".
  std::string WhyNot(ValueId);

 private:
  std::shared_ptr<const Quant> Known(ValueId root);
  ValueId Root(ValueId);
  void Tie(ValueId, ValueId);
  bool IsActivation(ValueId v) const { return v != kNoValue && groups_.contains(v); }
  void TieResults(const Node&);
  void TieOutputState(const Node&);
  void TieOperands(const Node&);
  bool HasItsOwn(ValueId);
  bool IsOnlyFor(ValueId, const Node&) const;

  const Function& f_;
  const Uses uses_;
  const Reasons& floats_;
  Ranges groups_;  // by root
  std::map<ValueId, ValueId> parent_;
  std::map<ValueId, std::shared_ptr<const Quant>> fixed_, quants_;
  std::set<ValueId> recurrent_, symmetric_;  // with an LSTM's output
};

// ---- lstm8.cc

// Operands; of each gate one, in the order input, forget, cell, output. The cell has no peephole.
inline constexpr size_t kInputWeights = 1, kRecurrentWeights = 5, kPeephole = 9, kBias = 12, kProjection = 16,
                        kProjectionBias = 17, kLstmOutputState = 18, kLstmCellState = 19, kLayerNorm = 20;
inline constexpr size_t kLstmGates = 4;
// The intermediate that says how what is projected is stored. Those before it: the gates' sums before layer
// normalization.
inline constexpr size_t kLstmHidden = 4;

// Makes all constant operands integers and adds the intermediates that readers want; or says why not. The
// last says the scale of the `output` where there is no projection. The op's input, states and results are
// left to the caller.
std::string StoreLstmWeights(Function&, Node&, const LstmRanges&, const Quant& input,
                             const std::shared_ptr<const Quant>& output);
// What users of TFLite must know of such an LSTM; else "".
std::string LstmWarning(const Function&, const Node&);
// Of a cell state with such values: 16 bits, a power of two.
std::shared_ptr<const Quant> CellStateScale(const Range&);
// Symmetric i8 for such values. The largest of them is 127 steps in f32, too.
std::shared_ptr<const Quant> SymmetricScale(const Range&);
// Whether the op's output must have no zero point.
bool WantsSymmetricOutput(const Node& lstm);
// The initial state `from` in integers, as a tensor that the op may update. What makes it is appended to the
// nodes.
ValueId StoreState(Function&, ValueId from, DType, const std::shared_ptr<const Quant>&);

// ---- lstm_sums.cc

struct LstmSum {
  size_t intermediate;  // whose range it is in
  ValueId value;
};
// Appends ops that compute what an f32 LSTM of one step, which is in the function, keeps to itself and its
// integer form asks the range of. `h` [batch, outputs] and `c` [batch, cells]: its states before the step.
std::vector<LstmSum> AddLstmSums(Function&, const Node& lstm, ValueId h, ValueId c);

}  // namespace fusebox::converter::quantize
