// SPDX-License-Identifier: Apache-2.0
// Recognized layers become composites keras.lstm, keras.gru and keras.simple_rnn (docs/composites.md has the
// operands), whose body is the part of the graph that was recognized, so that a proof runs what the model
// said.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "converter/passes/outline/cell.h"

namespace fusebox::converter::outline {

// How the layer reads its sequence: the tensor before transposes and reverses that the composite stands for
// too.
struct Orientation {
  ValueId inputs = kNoValue;
  bool time_major = true, go_backwards = false;
  int time_axis() const { return time_major ? 0 : 1; }
};
Orientation Orient(const Expressions& caller, ValueId time_major_sequence);

// A recognized layer, in terms of the caller's values.
struct Layer {
  Cell cell;
  const Function* weights = nullptr;  // whose constants the cell's blocks name
  Orientation in;
  std::vector<ValueId> initial;  // h, and c of an LSTM
  bool sequence = true;          // its second result is the whole sequence, else its last step
  ValueId mask = kNoValue;       // bool [batch, steps, 1], or steps first, as the inputs
  bool zero_output_for_mask = false;
  Location location;
};

// The composite, put before nodes[at] of the caller with the ops that bring its weights into their layout;
// `at` moves on to the node that stood there. Its body is left to the caller of this. Results: last output,
// outputs, h (, c).
Node& AddComposite(Function& caller, size_t& at, const Layer& layer, std::string body);

// The part of `caller` that computes `wanted`, as the body of a layer's composite with the composite's
// operands as inputs.
struct Region {
  std::vector<ValueId> wanted;
  std::map<ValueId, size_t> bound;  // value -> operand of the composite
  std::map<std::pair<const Node*, size_t>, size_t>
      bound_operands;  // a node's operand -> operand of the composite
};
// Adds to `body`, whose inputs are made here; returns what `wanted` is there. A refusal names what else it
// hangs on.
Result<std::vector<ValueId>> CopyRegion(const Function& caller, const Region&, const Layer&, Function& body);

// Adds the weights to the inputs, before the mask: they stand in the region as constants already, and the
// operands that a rule reads are the same in the composite's layout. The results are the last output (h, but
// for a mask's last step of the sequence), the sequence, h and, where there is one, c.
void FinishBody(Function& body, const Layer&, ValueId h, ValueId sequence, ValueId c);

// Readers of one step of a sequence, and of the sequence with its first two dimensions exchanged, read the
// composite's results. `steps` is the caller's [steps, batch, units], which nobody computes afterwards.
void ReplaceSequence(Function& caller, size_t after, ValueId steps, const Layer&, const Node& composite);

}  // namespace fusebox::converter::outline
