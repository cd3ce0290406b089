// SPDX-License-Identifier: Apache-2.0
// The configuration of a model as a tree of layers and calls between them: Sequential and functional models,
// models in models, layers that are called several times, layers that wrap others; the spellings of Keras 1,
// 2 and 3.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "host/base/status.h"

namespace fusebox::keras {

// Result `tensor` of call `call` of layer `layer` (an index into Model::layers).
struct TensorRef {
  int layer = 0, call = 0, tensor = 0;
  auto operator<=>(const TensorRef&) const = default;
};

// What a layer is called with: a tensor, a list of arguments, or a plain value.
struct Argument {
  std::variant<nlohmann::json, TensorRef, std::vector<Argument>> value = nlohmann::json();
};
struct LayerUse {
  std::vector<Argument> args;
  std::map<std::string, Argument> kwargs;
};

struct Model;

struct Layer {
  std::string class_name, name;
  std::string stored_class;  // which names its group in a .keras file, where it is another: RNN around an
                             // LSTMCell is an LSTM
  std::string
      path;  // of layer names, outermost first, without the whole model's: what messages and locations say
  nlohmann::json config;       // an object
  nlohmann::json input_shape;  // as build_config has it; null when it is not said
  bool trainable = true;
  bool operation = false;   // of Keras 3: a function, not a layer, though classes share names
  bool sourceless = false;  // called as in Keras 3, but the file (.h5) does not say whether it is one
  std::vector<LayerUse> uses;
  std::unique_ptr<Model> model;  // a model as a layer
  std::vector<std::unique_ptr<Layer>>
      wrapped;                       // Bidirectional: forward, backward; TimeDistributed: the layer
  std::vector<std::string> weights;  // datasets of the file in Keras' order; AssignWeights fills them in

  std::string Describe() const { return "layer " + path + " (" + class_name + ")"; }
};

struct Model {
  std::string name;
  bool sequential = false;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<TensorRef> inputs, outputs;
};

// `config` is {"class_name": ..., "config": ...} of the whole model. Errors name the layer's path.
Result<Model> ParseModel(const nlohmann::json& config);

}  // namespace fusebox::keras
