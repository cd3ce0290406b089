// SPDX-License-Identifier: Apache-2.0
// A WHILE that walks once over a sequence, from its first step to its last, and what it does to each of its
// variables.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "converter/passes/outline/affine.h"

namespace fusebox::converter::outline {

// One dimension of a tensor of the caller, or a number.
struct Extent {
  ValueId tensor = kNoValue;  // kNoValue: `size` says it
  int64_t axis = 0, size = -1;
  bool operator==(const Extent&) const = default;
};
Extent ExtentOf(const Expressions& caller, ValueId tensor, int64_t axis);
std::optional<Extent> ExtentOf(const Expressions& caller, ValueId scalar);  // of a number of steps

struct StepLoop {
  size_t index = 0;  // of the WHILE among the caller's nodes
  const Node* node = nullptr;
  const Function* body = nullptr;
  std::vector<size_t> states;  // variables that a step computes anew
  ValueId mask = kNoValue;     // in the body, bool [batch, 1]: the rows that the step changes; none: all
  bool zero_output = false;    // what it writes for the other rows: zeros, else what it wrote before
  struct Written {
    size_t variable;
    ValueId value;      // in the body, of the rows that the step changes
    bool whole;         // one element per step; else one for all of them, the last
    const Node* stack;  // the caller's TENSOR_LIST_STACK; null: nobody reads the list
  };
  std::vector<Written> written;
  std::vector<Extent> limits;  // the loop ends at the smallest of them

  ValueId input(size_t variable) const { return body->inputs[variable]; }
  ValueId output(size_t variable) const { return body->outputs[variable]; }
  // What becomes of a state in the rows that the step changes.
  ValueId next(size_t state) const {
    const auto it = unmasked.find(state);
    return it == unmasked.end() ? output(state) : it->second;
  }
  std::map<size_t, ValueId> unmasked;
};

// Does this loop work on tensor lists? Others are no recurrent layer, and nobody expects a word about them.
bool WritesLists(const Module&, const Node& loop);

// Refusals say what is not as it must be: a condition on something else, an index that is no counter, a list
// of another length.
Result<StepLoop> ReadLoop(const Module&, const Expressions& caller, const Expressions& body, size_t index);

// The caller's tensor [steps, ...] of which `value` of the body is the step at hand.
Result<ValueId> SequenceOf(const StepLoop&, const Expressions& caller, const Expressions& body,
                           ValueId value);
// The loop takes as many steps as that tensor has; of a mask only numbers that contradict each other are
// refused.
Status CheckLength(const StepLoop&, const Expressions& caller, ValueId sequence);
Status CheckMaskLength(const StepLoop&, const Expressions& caller, ValueId mask);

}  // namespace fusebox::converter::outline
