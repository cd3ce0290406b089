// SPDX-License-Identifier: Apache-2.0
// What each op asks of the scales of its operands and results when it computes in 8 bits.
#pragma once

#include <optional>
#include <utility>

#include "host/graph/graph.h"

namespace fusebox::converter::quantize {

enum class Role8 {
  kNone,      // no 8-bit kernel in every reader
  kWeighted,  // weights, bias
  kOwn,       // each operand and result has a scale of its own
  kSame,      // moves data: results have the operand's scale
  kJoin,      // several operands, all of the result's scale
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

}  // namespace fusebox::converter::quantize
