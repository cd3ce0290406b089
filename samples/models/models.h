// SPDX-License-Identifier: Apache-2.0
// The sample SavedModels: made from seeded weights by code that can be read, for the demo and for tests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "host/base/status.h"

namespace fusebox::samples {

// What a sample is made by: writes a SavedModel to dir, the same bytes for the same seed.
struct SampleModel {
  std::string_view name;
  std::string_view description;
  Status (*write)(const std::string& dir, uint64_t seed);
};

std::span<const SampleModel> SampleModels();
const SampleModel* FindSampleModel(std::string_view name);

// x [?,8] -> MatMul, BiasAdd, Relu twice, MatMul, BiasAdd, Softmax -> "probabilities" [?,4].
Status WriteDense(const std::string& dir, uint64_t seed);

// x [?,units] -> MatMul, BiasAdd, Relu, `layers` times -> "output" [?,units]: a model as large as one likes.
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
  bool last_step_only = false;  // the form of newer Keras: the function's second result is [batch, 1, units]
  bool return_state = false;    // "state_h" and "state_c" are outputs too
  enum class State {
    kZeros,
    kConstant,
    kComputed,
    kInput
  } initial_state = State::kZeros;  // kInput: h and c are inputs
  enum class Body { kKeras, kFourGates, kSwappedGates } body = Body::kKeras;
  bool dense_head = true;     // a Dense layer of one unit on the output; not with kInput
  bool unknown_rank = false;  // the function's argument does not say its rank
};
Status WriteLstm(const std::string& dir, uint64_t seed, const LstmOptions& options);

// The model of TensorFlow's guide to fusing: image [1,28,28,3] -> two Conv2D (one filter, 3x3) ->
// my_custom_fused_op (2 in, 2 out; tfl_fusable_op, example_option 10) -> "output_0", "output_1".
struct CustomFusedOptions {
  bool real_body =
      false;  // (example_option * (a + b), a * b), as hello_plugin computes it; else constants: a placeholder
  int64_t example_option = 10;
};
Status WriteCustomFused(const std::string& dir, uint64_t seed, const CustomFusedOptions& options);

// image [1,8,8,3] -> Conv2D (4 filters, 3x3) + bias + Relu -> "output".
struct ConvReluOptions {
  bool second_consumer = false;  // the sum before Relu is an output too: "pre_activation"
  bool spatial_bias = false;     // the bias is [1,1,6,4] through AddV2: it varies over W
};
Status WriteConvRelu(const std::string& dir, uint64_t seed, const ConvReluOptions& options);

// "serving_default": increment (f32 scalar) is added to a variable that starts at 0 -> "count", its new
// value. "peek": no change -> "count". Another, read-only variable scales "scaled" = count * scale.
Status WriteCounter(const std::string& dir, uint64_t seed);

}  // namespace fusebox::samples
