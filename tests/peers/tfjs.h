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

// A whole Keras model: its configuration and the weights of each layer in Keras' order. Configurations of
// Keras 3 are not understood by TensorFlow.js.
struct KerasModel {
  nlohmann::json config;  // {"class_name", "config"}
  std::vector<std::pair<std::string, std::vector<Tensor>>> weights;
  std::vector<Tensor> inputs;  // f32 or i32
};
Result<KerasModel> ReadKeras(const std::string& file, std::vector<Tensor> inputs);  // .h5
// The outputs of each model on its inputs, or what TensorFlow.js has against it.
Result<std::vector<Result<std::vector<Tensor>>>> RunTfjs(const std::vector<KerasModel>& models);

// node SCRIPT (of tests/peers) JOB OUT, with `data` in a file that the job names; what it wrote. [{"shape",
// "values"}] as f32 tensors.
Result<nlohmann::json> RunTfjsScript(const std::string& script, nlohmann::json job, const std::string& data);
std::vector<Tensor> TensorsOf(const nlohmann::json& from);

// A weight of a SavedModel by the beginning of its key in the checkpoint
// ("layer_with_weights-0/cell/kernel/").
Result<std::vector<Tensor>> Weights(const std::string& saved_model, const std::vector<std::string>& keys);

}  // namespace fusebox::testing
