// SPDX-License-Identifier: Apache-2.0
// Recognized layers become composites keras.lstm, keras.gru, keras.simple_rnn and keras.conv_lstm
// (docs/composites.md has the operands), with the recognized part of the graph as body.
#pragma once

#include <vector>

#include "converter/recognize/recognizer.h"
#include "converter/recognize/rnn/cell.h"

namespace fusebox::converter::recognize {

// How a layer reads its sequence: the tensor before transposes and reverses that the composite includes.
struct SequenceLayout {
  ValueId inputs = kNoValue;
  bool time_major = true;
  bool go_backwards = false;
  int time_axis() const { return time_major ? 0 : 1; }
};
SequenceLayout LayoutOf(const View&, ValueId time_major_sequence);
// The permutation that exchanges the first two of `rank` dimensions.
std::vector<int64_t> ExchangeOf(int rank);

struct Layer {
  Cell cell;
  const Function* weights = nullptr;  // whose constants the cell's blocks name
  bool hybrid = false;                // these are 8-bit weights of hybrid products; else they become f32
  SequenceLayout in;
  std::vector<ValueId> initial;  // h, and c of an LSTM
  std::vector<int64_t> space;    // ConvLSTM: spatial sizes of a state
  bool sequence = true;          // its second result is the whole sequence, else its last step
  ValueId mask = kNoValue;       // bool [batch, steps, 1], or steps first, as the inputs
  bool zero_output_for_mask = false;
  Location location;
};
// A layer over values of the viewed function as one over inputs of the replacement; all below expect this.
Layer Imported(Replacement&, Layer);

// The body of the layer's composite: the composite's operands are its inputs.
struct LayerBody {
  Function& f;
  ValueId inputs;
  std::vector<ValueId> states;
  ValueId mask;  // as Layer::mask; kNoValue: none

  // The results are the last output (h, but for a mask's last step of the sequence), the sequence, h and, if
  // there is one, c.
  void SetResults(const Layer&, ValueId sequence, const std::vector<ValueId>& states);
};
LayerBody AddLayerBody(Replacement&, const Layer&);
// A layer's definition as a loop over tensor lists, for ops without a body. The layer's blocks are whole,
// transposed matrices.
const Function& AddLoopBody(Replacement&, const Layer&);

// The composite, behind the ops that bring its weights into their layout. Results: last output, outputs, h (,
// c).
std::vector<ValueId> AddLayer(Replacement&, const Layer&, const Function& body);

// Readers of one step of a sequence, and of the sequence with its first two dimensions exchanged, read the
// composite's results. `steps` is the viewed function's [steps, batch, units].
void SetSequence(Replacement&, ValueId steps, const Layer&, const std::vector<ValueId>& results);

}  // namespace fusebox::converter::recognize
