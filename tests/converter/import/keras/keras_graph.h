// SPDX-License-Identifier: Apache-2.0
// Builds functional models for tests, in the formats of Keras 2 and Keras 3.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/keras_cases.h"

namespace fusebox::testing {

// Adds one layer at a time; the last one is the output. Batch sizes are those of the inputs; null: unknown.
class Graph2 {
 public:
  using json = nlohmann::json;

  Graph2& Input(const std::string& name, json shape, const std::string& dtype = "float32") {
    Entry("InputLayer", {{"batch_input_shape", std::move(shape)}, {"dtype", dtype}}, name, json::array());
    inputs_.push_back({name, 0, 0});
    return *this;
  }
  // A call on the results of these layers, with keyword arguments.
  Graph2& Layer(const std::string& class_name, json config, const std::string& name,
                const std::vector<std::string>& from, const json& keywords = json::object()) {
    json node = json::array();
    for (const std::string& one : from) node.push_back({one, 0, 0, keywords});
    // A function has one tensor instead of a list.
    if (class_name.ends_with("OpLambda")) node = node[0];
    return Entry(class_name, std::move(config), name, json::array({node}));
  }
  json Config() const {
    return {{"class_name", "Functional"},
            {"config",
             {{"name", "model"},
              {"layers", layers_},
              {"input_layers", inputs_},
              {"output_layers", {{last_, 0, 0}}}}}};
  }

 private:
  Graph2& Entry(const std::string& class_name, json config, const std::string& name, json nodes) {
    json entry = LayerEntry(class_name, std::move(config), name);
    entry["name"] = last_ = name;
    entry["inbound_nodes"] = std::move(nodes);
    layers_.push_back(std::move(entry));
    return *this;
  }
  json layers_ = json::array(), inputs_ = json::array();
  std::string last_;
};

class Graph3 {
 public:
  using json = nlohmann::json;

  static json Tensor(const std::string& layer) {
    return {{"class_name", "__keras_tensor__"},
            {"config", {{"shape", {nullptr, 2}}, {"dtype", "float32"}, {"keras_history", {layer, 0, 0}}}}};
  }
  Graph3& Input(const std::string& name, json shape, const std::string& dtype = "float32") {
    inputs_.push_back({name, 0, 0});
    return Entry("keras.layers", "InputLayer", {{"batch_shape", std::move(shape)}, {"dtype", dtype}}, name,
                 json::array());
  }
  Graph3& Layer(const std::string& class_name, json config, const std::string& name, json args,
                json kwargs = json::object()) {
    config["trainable"] = true;
    config["dtype"] = {{"module", "keras"},
                       {"class_name", "DTypePolicy"},
                       {"config", {{"name", "float32"}}},
                       {"registered_name", nullptr}};
    return Call("keras.layers", class_name, std::move(config), name, std::move(args), std::move(kwargs));
  }
  Graph3& Operation(const std::string& class_name, json config, const std::string& name, json args,
                    json kwargs = json::object()) {
    return Call("keras.src.ops.numpy", class_name, std::move(config), name, std::move(args),
                std::move(kwargs));
  }
  json Config() const {
    return {{"module", "keras.src.models.functional"},
            {"class_name", "Functional"},
            {"registered_name", "Functional"},
            {"config",
             {{"name", "model"},
              {"layers", layers_},
              {"input_layers", inputs_},
              {"output_layers", {last_, 0, 0}}}}};
  }
  // Keras 3 model.save("x.h5"): does not store the origin of classes.
  json LegacyConfig() const { return Legacy(Config()); }
  static json Legacy(json entry) {
    for (const char* key : {"module", "registered_name", "build_config"}) entry.erase(key);
    if (const auto layers = entry["config"].find("layers"); layers != entry["config"].end())
      for (json& layer : *layers) layer = Legacy(std::move(layer));
    return entry;
  }

 private:
  Graph3& Call(const std::string& module, const std::string& class_name, json config, const std::string& name,
               json args, json kwargs) {
    return Entry(module, class_name, std::move(config), name,
                 json::array({{{"args", std::move(args)}, {"kwargs", std::move(kwargs)}}}));
  }
  Graph3& Entry(const std::string& module, const std::string& class_name, json config,
                const std::string& name, json nodes) {
    config["name"] = last_ = name;
    layers_.push_back({{"module", module},
                       {"class_name", class_name},
                       {"config", std::move(config)},
                       {"registered_name", nullptr},
                       {"name", name},
                       {"inbound_nodes", std::move(nodes)}});
    return *this;
  }
  json layers_ = json::array(), inputs_ = json::array();
  std::string last_;
};

}  // namespace fusebox::testing
