// SPDX-License-Identifier: Apache-2.0
// BIDIRECTIONAL_SEQUENCE_RNN (cell/bidirectional.h): f32, f64 and hybrid.
//
//   operands  0 input; 1 to 3 the forward weights, recurrent weights and bias, 4 the forward state; 5 to 7 and
//             8 the same backward; 9 to 11 auxiliary
#pragma once

#include "plugins/rnn/cell/bidirectional.h"
#include "plugins/rnn/rnn/kernel.h"

namespace fusebox::rnn {

inline constexpr BidirectionalLayout kBidirectionalRnn{"RNN", 12, 3, 1, {1, 5}, {4, 8}, 9};

struct BidirectionalRnnKernel : BidirectionalKernel<RnnKernel, kBidirectionalRnn> {
  static constexpr std::string_view builtin = "BIDIRECTIONAL_SEQUENCE_RNN";
  using BidirectionalKernel::BidirectionalKernel;
};

}  // namespace fusebox::rnn
