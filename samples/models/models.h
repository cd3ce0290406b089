// SPDX-License-Identifier: Apache-2.0
// Writers of sample SavedModels with seeded weights, for the demo and tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::samples {

// One sample: writes a SavedModel to dir; equal seeds give equal bytes.
struct SampleModel {
  std::string_view name;
  std::string_view description;
  Status (*write)(const std::string& dir, uint64_t seed);
};

std::span<const SampleModel> SampleModels();
const SampleModel* FindSampleModel(std::string_view name);

// x [?,8] -> MatMul, BiasAdd, Relu twice, MatMul, BiasAdd, Softmax -> "probabilities" [?,4].
Status WriteDense(const std::string& dir, uint64_t seed);
// The same as saved by `model.export()` of Keras 3.
Status WriteKeras3Dense(const std::string& dir, uint64_t seed);

// x [?,units] -> MatMul, BiasAdd, Relu, `layers` times -> "output" [?,units]: a model of any size.
Status WriteDenseStack(const std::string& dir, uint64_t seed, int layers, int64_t units);

// A Keras LSTM layer: signature "serving_default" (x [batch, steps, inputs], or [steps, batch, inputs] when
// time_major) -> "output".
struct LstmOptions {
  int batch = -1;  // -1: dynamic
  int steps = 5;   // -1: dynamic
  int inputs = 3;
  int units = 8;
  bool time_major = false;
  bool go_backwards = false;
  bool return_sequences = false;  // "output" is [batch, steps, units], else [batch, units]
  bool last_step_only = false;    // form of newer Keras: the function's second result is [batch, 1, units]
  bool return_state = false;      // "state_h" and "state_c" are outputs too
  enum class State {
    kZeros,
    kConstant,
    kComputed,
    kInput
  } initial_state = State::kZeros;  // kInput: h and c are inputs
  enum class Body { kKeras, kFourGates, kSwappedGates } body = Body::kKeras;
  bool dense_head = true;     // a Dense layer of one unit on the output; not with kInput
  bool unknown_rank = false;  // the function's argument has no rank
  bool independent = false;   // IndyLSTM: recurrent_kernel is [1,4u] and multiplies each unit's own state
};
Status WriteLstm(const std::string& dir, uint64_t seed, const LstmOptions& options);

// x [batch, steps, inputs] -> one recurrent layer as exported by Keras 3: a loop over tensor lists in the
// endpoint "serve" (and "serving_default"), without identifying attribute; the loop's body captures the
// weights -> "output", and with return_state "state_h" (and "state_c").
struct Keras3RnnOptions {
  enum class Layer { kLstm, kGru, kSimpleRnn } layer = Layer::kLstm;
  bool reset_after = true;  // of a GRU
  int implementation = 2;   // 2: one product for all gates, 1: one per gate
  int batch = -1;           // -1: dynamic
  int steps = 5;
  int inputs = 3;
  int units = 4;
  bool go_backwards = false;
  bool return_sequences = false;
  bool return_state = false;
  bool relu = false;  // its activation, else tanh
  enum class Gates { kSigmoid, kHardSigmoid, kHardSigmoidOfKeras3 } gates = Gates::kSigmoid;
  bool unroll = false;  // one copy of the cell per step, no loop
  bool use_bias = true;
  // one CudnnRNNV3 with packed parameters, as exported on a machine with a GPU; LSTM and GRU
  bool cudnn = false;
  bool mask = false;  // steps with only zero features are skipped
  enum class Twist {
    kNone,
    kClip,          // the state is clipped: not a Keras layer
    kWriteAt,       // the output list is written from its end
    kListLength,    // the output list is longer than there are steps
    kLastOf,        // the loop ends one step early
    kReadAt,        // the input is read by a counter that starts at 1 and wraps
    kCondition,     // the loop condition depends on the state
    kCounterOut,    // the counter is an output
    kSharedSteps,   // unrolled: two steps read the same input
    kOtherWeights,  // unrolled: the last step has its own weights
    kLengths,       // cudnn: sequences shorter than the tensor
    kDirection,     // cudnn: bidirectional
  } twist = Twist::kNone;
};
Status WriteKeras3Rnn(const std::string& dir, uint64_t seed, const Keras3RnnOptions& options);

// A Keras recurrent layer alone, or a Bidirectional one: "serving_default" (x as in WriteLstm) -> "output",
// or "forward" and "backward" if they are separate; and returned states "state_h" ("forward_state_h", ...).
struct RecurrentOptions {
  enum class Cell { kLstm, kGru, kGruResetBefore, kSimpleRnn } cell = Cell::kGru;
  int batch = -1;  // -1: dynamic
  int steps = 5;
  int inputs = 3;
  int units = 8;
  bool time_major = false;
  bool go_backwards = false;
  bool return_sequences = false;
  bool last_step_only = false;  // as in LstmOptions; a returned sequence has one step
  bool return_state = false;
  bool input_state = false;  // the initial states are inputs
  bool stateful = false;     // the states are variables, read and written
  bool zero_states = true;   // initial values; else random
  bool bias = true;          // else a constant of zeros
  bool other_body = false;   // a layer of another library with the same interface
  enum class Activation { kTanh, kRelu, kRelu6, kLinear } activation = Activation::kTanh;  // not LSTM
  enum class Merge {
    kNone,
    kConcat,
    kSum,
    kMul,
    kAverage,
    kSeparate
  } merge = Merge::kNone;  // kNone: one direction
  int backward_units = 0;  // 0: as forward
};
Status WriteRecurrent(const std::string& dir, uint64_t seed, const RecurrentOptions& options);

// The model of TensorFlow's guide to operation fusion: image [1,28,28,3] -> two Conv2D (one filter, 3x3) ->
// my_custom_fused_op (2 in, 2 out; tfl_fusable_op, example_option 10) -> "output_0", "output_1".
struct CustomFusedOptions {
  // (example_option * (a + b), a * b), as in hello_plugin; else constants: a placeholder
  bool real_body = false;
  int64_t example_option = 10;
};
Status WriteCustomFused(const std::string& dir, uint64_t seed, const CustomFusedOptions& options);

// image [1,8,8,3] -> Conv2D (4 filters, 3x3) + bias + Relu -> "output".
struct ConvReluOptions {
  bool second_consumer = false;  // the sum before Relu is an output too: "pre_activation"
  bool spatial_bias = false;     // the bias is [1,1,6,4] through AddV2: it varies over W
};
Status WriteConvRelu(const std::string& dir, uint64_t seed, const ConvReluOptions& options);

// image [?,16,16,3] -> Conv2D, DepthwiseConv2D and Conv2D, each with decomposed batch normalization and Relu
// or Relu6, MaxPool, Dense, Softmax -> "probabilities" [?,10].
Status WriteConvClassifier(const std::string& dir, uint64_t seed);

// "serving_default": adds increment (f32 scalar) to a variable with initial value 0 -> "count", its new
// value. "peek": no change -> "count". Another, read-only variable scales "scaled" = count * scale.
Status WriteCounter(const std::string& dir, uint64_t seed);

}  // namespace fusebox::samples
