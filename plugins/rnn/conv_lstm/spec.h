// SPDX-License-Identifier: Apache-2.0
// The checked sizes and options of a fusebox.conv_lstm node: an LSTM whose products are convolutions, over 1,
// 2 or 3 spatial dimensions.
//
//   operands  0 input [B,T,S..,n]; 1 initial h [B,P..,u]; 2 initial c [B,P..,u]; 3 input weights [4u,K..,n]; 4 recurrent
//             weights [4u,R..,u]; 5 bias [4u]; 6 (optional) mask, bool [B,T] or [B,T,M..] with each M 1 or P. Rows of
//             weights and bias are in the order i (input), f (forget), g (cell), o (output). With an f32 input constant
//             weights may be i8, symmetric, with one scale or one per row.
//   results   0 the outputs of all steps [B,T,P..,u], or with sequence false of the last step [B,1,P..,u]; 1 final h;
//             2 final c
//   options   strides, dilations (a list of one number per spatial dimension; empty: ones) and padding ("SAME" or
//             "VALID") of the input's convolution; the convolution of h keeps its size. sequence (true); go_backwards (false): the
//             input is read from its last step to its first; activation ("tanh") and recurrent_activation ("sigmoid"):
//             linear, relu, relu6, tanh, sigmoid, hard_sigmoid, hard_sigmoid_of_keras_3; zero_output_for_mask (false)
//
// Per step, with x the input, * a convolution, W, R and b the weights and biases:
//   i, f, o = gate(W * x + R * h + b)    g = act(W * x + R * h + b)
//   c' = f c + i g                       h' = o act(c')
// A step (or element) whose mask is false keeps h and c; its output is the output of the step before, zero
// before the first step and with zero_output_for_mask.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <fusebox/kernel.hpp>

#include "plugins/rnn/cell/operand_checks.h"

namespace fusebox::rnn {

using namespace sdk;

enum ConvLstmOperand : uint32_t {
  kConvInput,
  kConvH,
  kConvC,
  kConvWeights,
  kConvRecurrent,
  kConvBias,
  kConvMask,
  kConvOperands
};
inline constexpr size_t kConvGates = 4;
// Spatial dimensions are always three: a line is [1,1,size], a plane [1,height,width].
using Space = std::array<int64_t, 3>;

// A convolution from `in` to `out` elements; `before` are padded at the start of each dimension. Unknown
// sizes are -1.
struct Convolution {
  Space in{1, 1, 1};
  Space out{1, 1, 1};
  Space kernel{1, 1, 1};
  Space strides{1, 1, 1};
  Space dilations{1, 1, 1};
  Space before{};
  int64_t channels = -1;

  int64_t reach(size_t d) const { return (kernel[d] - 1) * dilations[d] + 1; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
};

struct ConvLstmSpec {
  // Throws Reject for nodes that are not supported.
  explicit ConvLstmSpec(const Node& node);

  // Index of the input of a row at a step.
  int64_t at(int64_t row, int64_t step) const {
    return row * steps + (go_backwards ? steps - 1 - step : step);
  }
  int64_t positions() const { return of_x.out[0] * of_x.out[1] * of_x.out[2]; }  // of a state
  int64_t outputs() const { return sequence ? steps : 1; }                       // steps of result 0
  size_t element_size() const { return dtype == FBX_F64 ? sizeof(double) : sizeof(float); }

  size_t space = 0;  // spatial dimensions
  int64_t batch = -1;
  int64_t steps = -1;
  int64_t cells = -1;
  Convolution of_x, of_h;
  bool sequence = true;
  bool go_backwards = false;
  bool masked = false;
  bool zero_output = false;
  bool element_mask = false;  // one number per element, otherwise one per step
  Activation activation = Activation::kTanh;
  Activation gate_activation = Activation::kSigmoid;
  fbx_dtype dtype = FBX_F32;
  bool i8_weights = false;  // operands 3 to 5
  bool constant_weights = false;

 private:
  void ReadWeights(const Node& node);
  void ReadSpace(const Node& node);
  void ReadMask(const Node& node);
  // The sizes of spatial dimensions in a list that begins at `first` in the operand.
  void Fit(const Node& node, uint32_t operand, int first, Space& sizes);
};

}  // namespace fusebox::rnn
