// SPDX-License-Identifier: Apache-2.0
// The LSTM cells of Lingvo become one LSTM op each.
//
//   names     LSTMCellSimple, LayerNormalizedLSTMCellSimple (also spelled ...LstmCellSimple), each with or without "lingvo." before
//             it, and with ",CoupleInputForgetGates" after it
//   operands  0 input [B,n_in], 1 weight [n_in+n_out, G*n_cell], 2 bias [G*n_cell], 3 projection [n_cell,n_out] (rank below 2: none),
//             4 scale of the layer normalization [4*n_cell] (a plain cell may leave it out, and does not read it),
//             then, in the longer form, m0 [B,n_out] and c0 [B,n_cell]; else the cell starts from zeros
//   results   m1 [B,n_out], and in the longer form c1 [B,n_cell]
//   attrs     cell_clip, proj_clip: bounds of c1 and of the projection (absent: what the body clips by; 0: none)
//
// G is 4: the gates cell, input, forget, output; coupled it is 3: cell, forget, output. The scale has the
// four parts of an uncoupled cell in any case. All f32; operands 1 to 4 must be constant; B may be unknown.
#pragma once

#include <fusebox/rule.hpp>

namespace fusebox::rnn {

struct LingvoLstmRule {
  static constexpr std::string_view id = "fusebox.lingvo_lstm", implements = "LSTMCellSimple*";
  static constexpr double atol = 1e-5, rtol = 1e-5;

  static void match(const Site& site);
  static void rewrite(const Site& site, Build& build);
};

}  // namespace fusebox::rnn
