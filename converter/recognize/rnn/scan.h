// SPDX-License-Identifier: Apache-2.0
// A WHILE that walks once over a sequence, from its first step to its last, and what it does to each of its
// variables.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "converter/recognize/rnn/affine.h"

namespace fusebox::converter::recognize {

// One dimension of a tensor of the caller, or a number.
struct Extent {
  ValueId tensor = kNoValue;  // kNoValue: see `size`
  int64_t axis = 0;
  int64_t size = -1;
  bool operator==(const Extent&) const = default;
};
Extent ExtentOf(const View& caller, ValueId tensor, int64_t axis);
std::optional<Extent> ExtentOf(const View& caller, ValueId scalar);  // of a number of steps

struct Scan {
  const Node* node = nullptr;
  const Function* body = nullptr;
  std::vector<size_t> states;  // variables that a step computes anew
  ValueId mask = kNoValue;     // in the body, bool [batch, 1]: the rows that the step changes; none: all
  bool zero_output = false;    // what it writes for the other rows: zeros, else what it wrote before
  // A list, or a tensor that stands for one (row_write.h).
  struct Written {
    size_t variable;
    ValueId value;             // in the body, of the rows that the step changes
    ValueId index;             // in the body; kNoValue: the only element
    ValueId steps = kNoValue;  // the caller's [steps, ...]; kNoValue: nobody reads it whole
    ValueIds last = {};        // the caller's items that are read at the last index
    bool whole = false;        // one element per step; else one for all of them, the last
  };
  std::vector<Written> written;
  std::vector<Extent> limits;               // the loop ends at the smallest of them
  std::set<const Node*> last_indices = {};  // of the caller: the number of steps, less one

  ValueId input(size_t variable) const { return body->inputs[variable]; }
  ValueId output(size_t variable) const { return body->outputs[variable]; }
  // Returns the new value of a state in the rows that the step changes.
  ValueId next(size_t state) const {
    const auto it = unmasked.find(state);
    return it == unmasked.end() ? output(state) : it->second;
  }
  std::map<size_t, ValueId> unmasked;
};

// Returns whether the loop works on tensor lists, or on tensors that stand for them. Other loops are no
// recurrent layers, so nothing reports them.
bool WritesLists(const View& caller, const Node& loop);

// Returns whether the slice is sequence[..., last, ...] along the axis, which is removed. `one_step`: the
// axis has one element.
bool MatchesLast(const View&, const Node& slice, size_t axis, bool one_step);

// Reads a loop over steps. Errors name the unmet requirement: a condition on something else, an index that is
// no counter, a list of another length.
Result<Scan> ReadScan(const View& caller, const View& body, const Node& loop);

// Returns the caller's tensor [steps, ...] whose current step is `value` of the body.
Result<ValueId> SequenceOf(const Scan&, const View& caller, const View& body, ValueId value);
// Rejects loops with another number of steps than the tensor. For a mask, only numbers that contradict each
// other are rejected.
Status CheckLength(const Scan&, const View& caller, ValueId sequence);
Status CheckMaskLength(const Scan&, const View& caller, ValueId mask);

}  // namespace fusebox::converter::recognize
