// SPDX-License-Identifier: Apache-2.0
// Steps of unrolled layers: copies of a cell, each of which reads one part of an UNPACK and the states of the
// one before.
#pragma once

#include <vector>

#include "converter/recognize/rnn/cell.h"

namespace fusebox::converter::recognize {

struct Step {
  Cell cell;             // its x is a result of an UNPACK
  ValueId h = kNoValue;  // kNoValue in a first step whose zeros are folded
  ValueId c = kNoValue;  // of an LSTM
  ValueId next_h = kNoValue;
  ValueId next_c = kNoValue;
};
// Returns the steps that read the parts of this UNPACK.
std::vector<Step> FindSteps(const View&, const Node& unpack);

// Steps that follow each other through all parts of one UNPACK, the first first.
struct Chain {
  const Node* unpack = nullptr;
  bool reversed = false;  // from the last part to the first
  std::vector<const Step*> steps;
};
// At least two steps long, with the same weights in all. The steps must outlive the chains.
std::vector<Chain> FindChains(const View&, const Node& unpack, const std::vector<Step>&);

}  // namespace fusebox::converter::recognize
