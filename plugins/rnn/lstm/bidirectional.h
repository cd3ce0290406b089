// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_LSTM (cell/bidirectional.h): f32, f64 and hybrid. time_major defaults to true.
//
//   operands  0 input; 1 to 17 the forward weights in the order of UNIDIRECTIONAL_SEQUENCE_LSTM, 18 to 34 the
//             backward weights; 35, 36 forward and 37, 38 backward states; 39 to 47 auxiliary
#pragma once

#include "plugins/rnn/cell/bidirectional.h"
#include "plugins/rnn/lstm/kernel.h"

namespace fusebox::rnn {

inline constexpr BidirectionalLayout kBidirectionalLstm{"LSTM", 48, 17, 2, {1, 18}, {35, 37}, 39};

struct BidirectionalLstmKernel : BidirectionalKernel<LstmKernel, kBidirectionalLstm> {
  static constexpr std::string_view builtin = "BIDIRECTIONAL_SEQUENCE_LSTM";
  using BidirectionalKernel::BidirectionalKernel;
};

}  // namespace fusebox::rnn
