// SPDX-License-Identifier: Apache-2.0
// Recurrent layers as TensorFlow 1 writes them, with seeded weights.
#pragma once

#include "tests/testing/models/v1_graph.h"

namespace fusebox::test_models {

struct V1RnnOptions {
  enum class Cell {
    kBasicLstm,       // BasicLSTMCell, and LSTMCell without peepholes
    kPeepholeLstm,    // LSTMCell with peepholes: no Keras layer
    kProjectedLstm,   // LSTMCell with a projection: no Keras layer
    kBlockLstm,       // LSTMBlockCell: one op per step
    kGru,             // GRUCell
    kBlockGru,        // GRUBlockCellV2: one op per step
    kBasicRnn,        // BasicRNNCell
    kFusedBlockLstm,  // LSTMBlockFusedCell: one BlockLSTM for all steps
    kFusedBlockLstm2  // BlockLSTMV2, whose gates are in another order
  } cell = Cell::kBasicLstm;
  int batch = 2;  // -1: known at run time only
  int steps = 4;  // -1: known at run time only
  int inputs = 3;
  int units = 5;
  bool time_major = false;
  bool backwards = false;   // the second layer of bidirectional_dynamic_rnn
  bool lengths = false;     // sequence_length, an input
  bool static_rnn = false;  // unrolled
  float forget_bias = 1;
  bool final_state = true;   // "c" and "h" are outputs too
  bool last_output = false;  // of dynamic_rnn: "output" is the last item of the list, as Keras reads it
};

// dynamic_rnn or static_rnn: "x" -> "output", and the final state.
V1Graph V1Rnn(const V1RnnOptions& options, uint64_t seed);
Names OutputsOf(const V1RnnOptions& options);

}  // namespace fusebox::test_models
