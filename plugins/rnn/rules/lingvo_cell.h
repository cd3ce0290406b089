// SPDX-License-Identifier: Apache-2.0
// The checked name, operands and body of a Lingvo LSTM cell.
//
//   names     LSTMCellSimple, LayerNormalizedLSTMCellSimple (also spelled ...LstmCellSimple), each with or without the prefix
//             "lingvo." and the suffix ",CoupleInputForgetGates"
//   operands  0 input [B,n_in], 1 weight [n_in+n_out, G*n_cell], 2 bias [G*n_cell], 3 projection [n_cell,n_out] (rank below 2: none),
//             4 scale of the layer normalization [4*n_cell] (optional and unused for a plain cell),
//             then, in the longer form, m0 [B,n_out] and c0 [B,n_cell]; otherwise the cell starts from zeros
//   results   m1 [B,n_out], and in the longer form c1 [B,n_cell]
//   attrs     cell_clip, proj_clip: bounds of c1 and of the projection (default: the bounds in the body; 0: none)
//
// G is 4 (gates cell, input, forget, output) or, coupled, 3 (cell, forget, output). The scale has the four
// parts of an uncoupled cell in both cases. All f32; operands 1 to 4 must be constant; B may be unknown.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

using namespace sdk;

struct LingvoCell {
  // Throws Reject for cells that the op cannot express.
  explicit LingvoCell(const Site& site);

  static constexpr uint32_t kInput = 0;
  static constexpr uint32_t kWeight = 1;
  static constexpr uint32_t kBias = 2;
  static constexpr uint32_t kProjection = 3;
  static constexpr uint32_t kScale = 4;

  bool layer_norm = false;
  bool coupled = false;
  bool projection = false;
  bool states = false;  // the longer form
  uint32_t m0 = 0;      // operands, if states
  uint32_t c0 = 0;
  int32_t gates = 4;  // G
  int32_t inputs = 0;
  int32_t cells = 0;
  int32_t outputs = 0;
  double cell_clip = 0;
  double projection_clip = 0;

 private:
  void ParseName(const Site& site);
  void CheckArity(const Site& site);
  void CheckWeights(const Site& site);
  void CheckInput(const Site& site) const;
  void FindClips(const Site& site);
};

}  // namespace fusebox::rnn
