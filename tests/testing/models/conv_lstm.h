// SPDX-License-Identifier: Apache-2.0
// A ConvLSTM layer as Keras exports it: a loop without identifying attribute, with a convolution per gate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/base/status.h"

namespace fusebox::test_models {

// x [batch, steps, size.., channels] -> "output" [batch, steps, size.., filters], or its last step, and with
// return_state "state_h" and "state_c".
struct ConvLstmOptions {
  std::vector<int64_t> size = {5, 4};    // 1, 2 or 3 dimensions
  std::vector<int64_t> kernel = {3, 2};  // 1, 2 or 3 dimensions
  int64_t batch = -1;
  int64_t steps = 3;
  int64_t channels = 3;
  int64_t filters = 2;
  int64_t stride = 1;
  int64_t dilation = 1;
  bool same = true;
  bool go_backwards = false;
  bool return_sequences = false;
  bool return_state = false;
  bool relu = false;
  bool hard_sigmoid = false;
  bool use_bias = true;
  bool keras2 = false;  // the initial state is a convolution by zeros
  enum class Twist {
    kNone,
    kDilatedState,  // the convolution of h is dilated
    kOtherKernel,   // the kernel of one gate is larger
    kPeephole,      // a gate reads c
    kScaledInput,   // one gate reads another input
    kTimeMajor,     // x is [steps, batch, ..]
  } twist = Twist::kNone;
};
Status WriteConvLstm(const std::string& dir, uint64_t seed, const ConvLstmOptions& options);

}  // namespace fusebox::test_models
