// SPDX-License-Identifier: Apache-2.0
// TensorFlow.js in node: an implementation of Keras layers that shares nothing with ours or with TFLite.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "host/base/status.h"
#include "host/graph/types.h"

namespace fusebox::testing {

// tf.layers[name](config) with weights in Keras order (f32).
struct KerasLayer {
  std::string name;
  nlohmann::json config;
  std::vector<Tensor> weights;
};

// One output per input, each the result of the stack of layers on it. Inputs are f32 or i32.
Result<std::vector<Tensor>> RunTfjs(const std::vector<KerasLayer>& layers, const std::vector<Tensor>& inputs);

// A weight of a SavedModel by the beginning of its key in the checkpoint ("layer_with_weights-0/cell/kernel/").
Result<std::vector<Tensor>> Weights(const std::string& saved_model, const std::vector<std::string>& keys);

}  // namespace fusebox::testing
