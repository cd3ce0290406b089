// SPDX-License-Identifier: Apache-2.0
// What each op asks of the scales of its operands and results when it computes in 8 bits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {

enum class Role8 {
  kNone,      // no 8-bit kernel in every reader
  kWeighted,  // weights, bias
  kOwn,       // each operand and result has a scale of its own
  kSame,      // moves data: results have the operand's scale
  kJoin,      // several operands, all of the result's scale
  kLstm,      // integers of 8, 16 and 32 bits: all of the op, or nothing
};
Role8 Role(const Node&);

// Where kSame has the data that it moves: SPLIT has its axis first.
size_t DataOperand(const Node&);
// {scale, zero point} of a result whose range the op itself says; the format asks for exactly these.
std::optional<std::pair<float, int64_t>> FixedScale(const Node&);

struct WeightedForm {
  size_t input, weights, bias;
  int axis;  // of the weights' scales; -1: one scale
};
std::optional<WeightedForm> FormOf(const Node&);
// Below this a bias, in steps, is sure to fit 32 bits beside the sums.
inline constexpr double kLargestBias = 1 << 30;

// ---- lstm8.cc

inline constexpr size_t kLstmOutputState = 18, kLstmCellState = 19;
// Makes operands 1 to 17 integers and adds the intermediates that readers want, which say the scale of the `output`; or says why not.
// The op's input, states and results are left to the caller.
std::string StoreLstmWeights(Function&, Node&, const Quant& input,
                             const std::shared_ptr<const Quant>& output);
// Of a cell state with such values: 16 bits, a power of two.
std::shared_ptr<const Quant> CellStateScale(const Range&);
// The initial state `from` in integers, as a tensor that the op may update. What makes it is appended to the nodes.
ValueId StoreState(Function&, ValueId from, DType, const std::shared_ptr<const Quant>&);

}  // namespace fusebox::converter::quantize
