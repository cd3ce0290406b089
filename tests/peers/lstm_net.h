// SPDX-License-Identifier: Apache-2.0
// Models with one LSTM op and seeded weights.
#pragma once

#include <memory>
#include <string>

#include "host/graph/graph.h"

namespace fusebox::testing {

// Inputs: x, h and c. Outputs: the op's output and the final h and c. The updated states are h and c times
// one.
struct LstmNet {
  std::string name = {};
  int64_t batch = 1, steps = 4, inputs = 5, cells = 8, outputs = 0;  // outputs 0: no projection
  bool one_step = false;                                             // op LSTM
  bool time_major = false, cifg = false, peephole = false, projection_bias = false, layer_norm = false;
  float cell_clip = 0, projection_clip = 0;
  std::string activation = "TANH";
  enum class Weights { kF32, kI8, kI8Asymmetric } weights = Weights::kF32;  // i8: hybrid

  int64_t width() const { return outputs ? outputs : cells; }
  std::unique_ptr<fusebox::Module> Module() const;
};

// A BIDIRECTIONAL_SEQUENCE_LSTM op. Inputs: x and the states of both directions. Outputs: the op's, and the
// final states.
struct BidirectionalLstmNet {
  LstmNet half = {};  // of each direction: neither one_step nor layer_norm
  bool merge = false;

  std::unique_ptr<fusebox::Module> Module() const;
};

// An integer LSTM op. Input: x. Outputs: the op's output; states start at zero and are kept between calls.
struct IntegerLstmNet {
  std::string name = {};
  int64_t batch = 1, steps = 4, inputs = 5, cells = 8, outputs = 0;  // outputs 0: no projection
  bool one_step = false, cifg = false, peephole = false, layer_norm = false;
  float cell_clip = 0, projection_clip = 0;
  int output_zero = 0;
  bool ends = false;  // weights of 8 bits are -128 or 127

  int64_t width() const { return outputs ? outputs : cells; }
  std::unique_ptr<fusebox::Module> Module() const;
};

// LSTM of kernel type BASIC. Inputs: x, h and c. Outputs: the op's four.
std::unique_ptr<Module> BasicLstmNet(int64_t batch, int64_t inputs, int64_t units);

}  // namespace fusebox::testing
