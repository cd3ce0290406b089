// SPDX-License-Identifier: Apache-2.0
// Steps of unrolled layers: copies of a cell, each of which reads one part of an UNPACK and the states of the
// one before.
#pragma once

#include <vector>

#include "converter/passes/outline/cell.h"

namespace fusebox::converter::outline {

struct Step {
  Cell cell;                           // its x is a result of an UNPACK
  ValueId h = kNoValue, c = kNoValue;  // h: kNoValue in a first step whose zeros are folded; c: of an LSTM
  ValueId next_h = kNoValue, next_c = kNoValue;
};
std::vector<Step> FindSteps(const Expressions&);

// Steps that follow each other through all parts of one UNPACK, the first first.
struct Chain {
  const Node* unpack = nullptr;
  bool reversed = false;  // from the last part to the first
  std::vector<const Step*> steps;
};
// At least two steps long, with the same weights in all; in the order of their UNPACKs. The steps must
// outlive the chains.
std::vector<Chain> FindChains(const Expressions&, const std::vector<Step>&);

}  // namespace fusebox::converter::outline
