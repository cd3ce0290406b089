// SPDX-License-Identifier: Apache-2.0
// A model's configuration as a tree of layers and the calls between them: Sequential and functional models,
// nested models, shared layers and wrapper layers, in the formats of Keras 1, 2 and 3.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "converter/import/keras/importers.h"
#include "host/base/status.h"

namespace fusebox::keras {

// Result `tensor` of call `call` of layer `layer` (an index into Model::layers).
struct TensorRef {
  int layer = 0;
  int call = 0;
  int tensor = 0;
  auto operator<=>(const TensorRef&) const = default;
};

// An argument of a layer call: a tensor, a list of arguments, or a plain value.
struct Argument {
  std::variant<nlohmann::json, TensorRef, std::vector<Argument>> value = nlohmann::json();
};
struct LayerUse {
  std::vector<Argument> args;
  std::map<std::string, Argument> kwargs;
};

struct Model;

struct WeightSpec {
  std::string name;  // "kernel"
  std::string path;  // below the layer's group in a .keras file: "vars/0"
  bool trainable = true;
};

// A layer of a custom class, as the importer of a plugin describes it for this configuration.
struct CustomLayer {
  std::string plugin;     // "com.acme.layers 1.0.0"
  nlohmann::json entry;   // the importer, without what this configuration lacks
  nlohmann::json config;  // with defaults
  std::vector<WeightSpec> weights;
  std::vector<std::vector<int64_t>> shapes;  // of the weights; -1: any size
};

struct Layer {
  std::string class_name, name;
  std::string stored_class;  // class that names its group in a .keras file if it differs: for RNN
                             // around an LSTMCell, LSTM
  std::string path;  // layer names, outermost first, without the root model; used in messages and locations
  nlohmann::json config;       // an object
  nlohmann::json input_shape;  // from build_config; null: missing
  bool trainable = true;
  bool operation = false;   // Keras 3: a function, not a layer; they share class names
  bool sourceless = false;  // Keras 3 .h5 file, which does not tell layers from operations
  std::vector<LayerUse> uses;
  std::unique_ptr<Model> model;               // a model as a layer
  std::shared_ptr<const CustomLayer> custom;  // null: a class of Keras
  // Bidirectional: forward, backward; TimeDistributed: the layer; a custom layer: the layers that it holds
  std::vector<std::unique_ptr<Layer>> wrapped;
  std::string held_as;               // by a custom layer: its group in a .keras file, below that one's
  std::string group;                 // of its objects in a .keras file: "layers/dense/"
  std::vector<std::string> weights;  // datasets in Keras' order, set by AssignWeights

  std::string Describe() const { return "layer " + path + " (" + class_name + ")"; }
};

struct Model {
  std::string name;
  bool sequential = false;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<TensorRef> inputs, outputs;
};

// Sequential and functional models.
bool IsModelClass(const std::string& name);

// `config` is {"class_name": ..., "config": ...} of the whole model. `importers` describe custom classes.
// Errors name the layer's path.
Result<Model> ParseModel(const nlohmann::json& config, const Importers& importers);

}  // namespace fusebox::keras
