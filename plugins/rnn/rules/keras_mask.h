// SPDX-License-Identifier: Apache-2.0
// Masked layers in terms of ops that know no masks. A step that the mask leaves out changes neither the state
// nor, but for zeros at the start or with zero_output_for_mask, the output. So the steps that count are moved
// to the front, in their order, whatever the mask looks like; the op runs over all, and each output is
// fetched from where its step (or the last one that counted before it) went. What the op makes of the steps
// behind is never read: its own final states are of no use. All this is done batch after batch: a time-major
// layer has its sequences and its mask turned before, and its outputs behind.
//
// But for the c of an LSTM, which is no output. Where it is read, the steps behind have one feature more than
// the others, huge, whose weights shut the input gate and open the forget gate: c stays what it is, exactly.
#pragma once

#include <fusebox/rule.hpp>

#include "plugins/rnn/rules/keras_layer.h"

namespace fusebox::rnn {

// A layer without a mask goes through it unchanged.
class CountedSteps {
 public:
  // keep_cell: of an LSTM whose final c is read.
  CountedSteps(const Site& site, const KerasLayer& layer, Build& build, bool keep_cell = false);

  Value inputs() const { return inputs_; }                     // of the op
  bool time_major() const { return time_major_ && !masked_; }  // of the op
  // The input weights of the gates i, f, c, o for these inputs.
  void PutWeights(Build& build, Value* weights) const;
  // What the layer gives for every step, from the op's whole sequence.
  Value Outputs(Build& build, Value sequence) const;
  // The last output that counts, else the initial state: the state that an LSTM, a GRU or a SimpleRNN shows.
  // Without a mask: final_state.
  Value FinalState(Build& build, Value sequence, Value initial, Value final_state) const;

 private:
  Value KeepingCell(Build& build, Value rank, Value from) const;

  bool masked_, time_major_, zero_output_, keep_cell_;
  int32_t units_;
  Tensor kernel_;
  Value inputs_ = none;
  Value counts_ = none;  // i32 [B,T]: 1 where the step counts, else 0
  Value so_far_ = none;  // how many count up to here
};

}  // namespace fusebox::rnn
