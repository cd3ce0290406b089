// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as composites: what one looks like from outside, and the loop that is its body.
#pragma once

#include "converter/import/keras/layer_call.h"

namespace fusebox::keras {

enum class CellKind { kLstm, kGru, kSimple };

// What a recurrent layer is, apart from its weights.
struct RecurrentSpec {
  CellKind kind = CellKind::kLstm;
  int64_t units = 0;
  nlohmann::json activation, recurrent_activation;
  bool reset_after = false;       // of a GRU
  bool return_sequences = false;  // else `outputs` is one step long
  bool time_major = false, go_backwards = false;
  bool zero_output_for_mask = false;  // what masked steps give: zeros, else what the step before gave
};
// States that a cell carries: h, and c of an LSTM.
size_t StateCount(CellKind);
int64_t GateCount(CellKind);

struct RecurrentOperands {
  ValueId inputs = kNoValue;  // [batch, time, features], or time first
  std::vector<ValueId> states;
  ValueId kernel = kNoValue, recurrent = kNoValue, bias = kNoValue;
  ValueId mask = kNoValue;  // bool [batch, time]
};
struct RecurrentResults {
  ValueId last = kNoValue, outputs = kNoValue;
  std::vector<ValueId> states;
};

// A composite keras.lstm, keras.gru or keras.simple_rnn, whose body is TensorFlow's loop over a tensor list.
// Results that nobody reads cost nothing.
RecurrentResults EmitRecurrent(LayerCall&, const RecurrentSpec&, const RecurrentOperands&);

}  // namespace fusebox::keras
