// SPDX-License-Identifier: Apache-2.0
// Runs Keras layers in TensorFlow.js on node, an implementation independent of ours and of TFLite.
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

// One output per input, each the result of all layers. Inputs are f32 or i32.
Result<std::vector<Tensor>> RunTfjs(const std::vector<KerasLayer>& layers, const std::vector<Tensor>& inputs);

// A whole Keras model: its configuration and weights per layer in Keras' order. TensorFlow.js does not
// support Keras 3 configurations.
struct KerasModel {
  nlohmann::json config;  // {"class_name", "config"}
  std::vector<std::pair<std::string, std::vector<Tensor>>> weights;
  std::vector<Tensor> inputs;  // f32 or i32
};
Result<KerasModel> ReadKeras(const std::string& file, std::vector<Tensor> inputs);  // .h5
// The outputs of each model on its inputs, or the error of TensorFlow.js.
Result<std::vector<Result<std::vector<Tensor>>>> RunTfjs(const std::vector<KerasModel>& models);

// Runs node SCRIPT (in tests/peers) JOB OUT, with `data` in a file that the job names; returns its output.
// [{"shape", "values"}] become f32 tensors.
Result<nlohmann::json> RunTfjsScript(const std::string& script, nlohmann::json job, const std::string& data);
std::vector<Tensor> TensorsOf(const nlohmann::json& from);

// A weight of a SavedModel by its checkpoint key prefix ("layer_with_weights-0/cell/kernel/").
Result<std::vector<Tensor>> Weights(const std::string& saved_model, const std::vector<std::string>& keys);

}  // namespace fusebox::testing
