// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as composites: their interface, and the loop that is the body.
#pragma once

#include "converter/import/keras/layers/convolution.h"

namespace fusebox::keras {

enum class CellKind { kLstm, kGru, kSimple, kConvLstm };

// A recurrent layer without its weights.
struct RecurrentSpec {
  CellKind kind = CellKind::kLstm;
  int64_t units = 0;
  nlohmann::json activation, recurrent_activation;
  bool reset_after = false;       // GRU only
  bool return_sequences = false;  // false: `outputs` has one step
  bool time_major = false;
  bool go_backwards = false;
  bool zero_output_for_mask = false;  // output of masked steps: zeros, else the previous step's
  Window window;                      // ConvLSTM only: of the input's convolution
  std::vector<Extent> space;          // ConvLSTM only: spatial sizes of a state

  Type StateType(int64_t batch) const;  // [batch, space..., units]
};
// States of a cell: h, for an LSTM also c.
size_t StateCount(CellKind);
int64_t GateCount(CellKind);

struct RecurrentOperands {
  ValueId inputs = kNoValue;  // [batch, time, space..., features], or time first
  std::vector<ValueId> states;
  ValueId kernel = kNoValue;
  ValueId recurrent = kNoValue;
  ValueId bias = kNoValue;
  ValueId mask = kNoValue;  // bool [batch, time], of a ConvLSTM also [batch, time, space...]
};
struct RecurrentResults {
  ValueId last = kNoValue;
  ValueId outputs = kNoValue;
  std::vector<ValueId> states;
};

// Emits a composite keras.lstm, keras.gru, keras.simple_rnn or keras.conv_lstm, whose body is a TensorFlow
// loop over a tensor list. Unused results are free.
RecurrentResults EmitRecurrent(LayerCall&, const RecurrentSpec&, const RecurrentOperands&);

}  // namespace fusebox::keras
