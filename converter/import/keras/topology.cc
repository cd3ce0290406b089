// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/topology.h"

#include <unordered_map>

#include "converter/import/keras/call_numbers.h"
#include "converter/import/keras/custom.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

constexpr size_t kMaxLayers = 1 << 16;

const json* Find(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

std::string Text(const json& object, const char* key) {
  const json* found = Find(object, key);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

// Where a layer is: the path of its parent, and what describes custom classes.
struct Place {
  const Importers& importers;
  std::string prefix;
  int depth = 0;  // of custom layers that hold each other

  Place Below(const Layer& layer) const { return {importers, layer.path + "/", depth}; }
};

Result<Model> Parse(const std::string& class_name, const json& config, const Place& place);

// Layers wrapped by another one, under Keras' attribute names.
Result<std::unique_ptr<Layer>> ParseLayer(const json& entry, const Place& place);

Status ParseWrapped(Layer& layer, const Place& place) {
  if (layer.class_name != "Bidirectional" && layer.class_name != "TimeDistributed") return {};
  const json* inner = Find(layer.config, "layer");
  if (!inner) return Invalid("it wraps no layer");
  FUSEBOX_ASSIGN(auto forward, ParseLayer(*inner, place.Below(layer)));
  if (layer.class_name == "TimeDistributed") {
    layer.wrapped.push_back(std::move(forward));
    return {};
  }
  std::unique_ptr<Layer> backward;
  if (const json* own = Find(layer.config, "backward_layer")) {
    FUSEBOX_ASSIGN(backward, ParseLayer(*own, place.Below(layer)));
  } else {
    FUSEBOX_ASSIGN(backward, ParseLayer(*inner, place.Below(layer)));
    const auto it = backward->config.find("go_backwards");
    backward->config["go_backwards"] = it == backward->config.end() || !it->is_boolean() || !it->get<bool>();
    backward->path = layer.path + "/backward_" + backward->name;
    forward->path = layer.path + "/forward_" + forward->name;
  }
  layer.wrapped.push_back(std::move(forward));
  layer.wrapped.push_back(std::move(backward));
  return {};
}

// An RNN around a Keras cell is stored as the layer of that cell.
void NameRecurrentLayer(Layer& layer) {
  const json* cell = layer.class_name == "RNN" ? Find(layer.config, "cell") : nullptr;
  const json* config = cell ? Find(*cell, "config") : nullptr;
  const std::string of = cell ? Text(*cell, "class_name") : std::string();
  const std::string package = cell ? Text(*cell, "registered_name") : std::string();
  if ((of != "LSTMCell" && of != "GRUCell" && of != "SimpleRNNCell") || !config || !config->is_object() ||
      package.find('>') != std::string::npos)
    return;
  layer.stored_class = layer.class_name;
  layer.class_name = of.substr(0, of.size() - 4);
  json own = *config;
  own.update(layer.config);
  own.erase("cell");
  layer.config = std::move(own);
}

// A layer of a custom class; the layers that it holds are wrapped.
Status ParseCustom(Layer& layer, const Importer& importer, const Place& place) {
  constexpr int kDeepest = 16;
  if (place.depth >= kDeepest) return Unsupported("importers of custom classes hold each other too deeply");
  FUSEBOX_ASSIGN(layer.custom, DescribeCustom(importer, layer.config));
  if (!layer.custom->entry.contains("layers")) return {};
  for (const json& held : layer.custom->entry["layers"]) {
    Place below = place.Below(layer);
    ++below.depth;
    FUSEBOX_ASSIGN(auto child, ParseLayer(EntryOf(held), below));
    child->held_as = held.value("path", held["name"].get<std::string>());
    layer.wrapped.push_back(std::move(child));
  }
  return {};
}

Result<std::unique_ptr<Layer>> ParseLayer(const json& entry, const Place& place) {
  auto layer = std::make_unique<Layer>();
  layer->class_name = Text(entry, "class_name");
  if (layer->class_name.empty()) return Invalid("a layer has no class_name");
  const json* config = Find(entry, "config");
  if (!config || (!config->is_object() && !(config->is_array() && layer->class_name == "Sequential")))
    return Invalid("layer of class " + layer->class_name + " has no config");
  layer->config = *config;
  layer->name =
      Text(entry, "name");  // used by references; a TensorFlowOpLayer's configuration has another name
  if (layer->name.empty()) layer->name = Text(*config, "name");
  if (layer->name.empty()) return Invalid("layer of class " + layer->class_name + " has no name");
  layer->path = place.prefix + layer->name;
  const std::string module = Text(entry, "module");
  layer->operation = module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
  const json* nodes = Find(entry, "inbound_nodes");
  layer->sourceless =
      module.empty() && nodes && nodes->is_array() && !nodes->empty() && (*nodes)[0].is_object();
  if (const json* trainable = Find(*config, "trainable"); trainable && trainable->is_boolean())
    layer->trainable = trainable->get<bool>();
  if (const json* build = Find(entry, "build_config"))
    if (const json* shape = Find(*build, "input_shape")) layer->input_shape = *shape;
  FUSEBOX_ASSIGN(const Importer* const importer,
                 FindImporter(place.importers, layer->class_name, Text(entry, "registered_name"), module)
                     .At(layer->Describe()));
  if (importer) {
    FUSEBOX_TRY(ParseCustom(*layer, *importer, place).At(layer->Describe()));
    return layer;
  }
  NameRecurrentLayer(*layer);
  if (IsModelClass(layer->class_name)) {
    FUSEBOX_ASSIGN(Model model, Parse(layer->class_name, *config, place.Below(*layer)));
    layer->model = std::make_unique<Model>(std::move(model));
  }
  FUSEBOX_TRY(ParseWrapped(*layer, place).At(layer->Describe()));
  return layer;
}

// Names of a model's layers, and references to them in the formats of Keras 1, 2 and 3.
class References {
 public:
  explicit References(const Model& model) {
    for (size_t i = 0; i < model.layers.size(); ++i)
      numbers_.emplace(model.layers[i]->name, static_cast<int>(i));
  }

  // ["name", call, tensor, ...]
  Result<TensorRef> Ref(const json& from) const {
    if (!IsRef(from)) return Invalid(from.dump().substr(0, 80) + " is not a reference to a layer's result");
    const auto it = numbers_.find(from[0].get<std::string>());
    if (it == numbers_.end())
      return Invalid("it refers to layer " + from[0].get<std::string>() + ", which does not exist");
    return TensorRef{it->second, from[1].get<int>(), from[2].get<int>()};
  }

  static bool IsRef(const json& from) {
    const auto small = [](const json& n) {
      return n.is_number_integer() && n.get<int64_t>() >= 0 && n.get<int64_t>() < (1 << 20);
    };
    return from.is_array() && from.size() >= 3 && from[0].is_string() && small(from[1]) && small(from[2]);
  }

  // Keras 3: tensors may be anywhere in nested lists.
  Result<Argument> Tree(const json& from) const {
    if (Text(from, "class_name") == "__keras_tensor__") {
      const json* config = Find(from, "config");
      const json* history = config ? Find(*config, "keras_history") : nullptr;
      if (!history) return Invalid("a tensor has no keras_history");
      FUSEBOX_ASSIGN(const TensorRef ref, Ref(*history));
      return Argument{ref};
    }
    // Inputs by name become a list, in the order of their names.
    const bool by_name = from.is_object() && !from.contains("class_name") && HasTensor(from);
    if (!from.is_array() && !by_name) return Argument{from};
    std::vector<Argument> list;
    for (const json& item : from) {
      FUSEBOX_ASSIGN(Argument one, Tree(item));
      list.push_back(std::move(one));
    }
    return Argument{std::move(list)};
  }

  static bool HasTensor(const json& from) {
    if (Text(from, "class_name") == "__keras_tensor__") return true;
    return (from.is_array() || from.is_object()) && std::ranges::any_of(from, HasTensor);
  }

  // Keras 2 keyword arguments: a reference, or a plain value (possibly tagged as one).
  Result<Argument> Keyword(const json& from) const {
    if (IsRef(from) && numbers_.contains(from[0].get<std::string>())) {
      FUSEBOX_ASSIGN(const TensorRef ref, Ref(from));
      return Argument{ref};
    }
    if (from.is_array() && from.size() >= 3 && from[0] == "_CONSTANT_VALUE") return Argument{from[2]};
    const bool list = from.is_array() && !from.empty() &&
                      std::ranges::any_of(from, [&](const json& item) { return IsRef(item); });
    if (!list) return Argument{from};
    std::vector<Argument> items;
    for (const json& item : from) {
      FUSEBOX_ASSIGN(Argument one, Keyword(item));
      items.push_back(std::move(one));
    }
    return Argument{std::move(items)};
  }

  Result<LayerUse> Use(const json& from) const {
    LayerUse use;
    if (from.is_object()) return Use3(from);
    if (!from.is_array() || from.empty()) return Invalid("a call is not a list");
    const bool single = from[0].is_string();
    std::vector<Argument> tensors;
    const auto add = [&](const json& entry) -> Status {
      if (entry.is_array() && entry.size() >= 3 && entry[0] == "_CONSTANT_VALUE") {
        tensors.push_back({entry[2]});
      } else {
        FUSEBOX_ASSIGN(const TensorRef ref, Ref(entry));
        tensors.push_back({ref});
      }
      if (entry.size() < 4 || !entry[3].is_object()) return {};
      for (const auto& [name, value] : entry[3].items()) {
        FUSEBOX_ASSIGN(use.kwargs[name], Keyword(value));
      }
      return {};
    };
    if (single) FUSEBOX_TRY(add(from));
    else
      for (const json& entry : from) FUSEBOX_TRY(add(entry));
    use.args.push_back(tensors.size() == 1 ? std::move(tensors[0]) : Argument{std::move(tensors)});
    return use;
  }

  // One reference, a list of them, or a map of names to references.
  Result<std::vector<TensorRef>> List(const json& from) const {
    std::vector<TensorRef> out;
    if (IsRef(from)) {
      FUSEBOX_ASSIGN(const TensorRef ref, Ref(from));
      out.push_back(ref);
    } else if (from.is_array() || from.is_object()) {
      for (const json& item : from) {
        FUSEBOX_ASSIGN(const auto more, List(item));
        out.insert(out.end(), more.begin(), more.end());
      }
    } else {
      return Invalid(from.dump().substr(0, 80) + " is not a reference to a layer's result");
    }
    return out;
  }

 private:
  Result<LayerUse> Use3(const json& from) const {
    LayerUse use;
    if (const json* args = Find(from, "args")) {
      if (!args->is_array()) return Invalid("args of a call is not a list");
      for (const json& arg : *args) {
        FUSEBOX_ASSIGN(Argument one, Tree(arg));
        use.args.push_back(std::move(one));
      }
    }
    if (const json* kwargs = Find(from, "kwargs")) {
      if (!kwargs->is_object()) return Invalid("kwargs of a call is not an object");
      for (const auto& [name, value] : kwargs->items()) {
        FUSEBOX_ASSIGN(use.kwargs[name], Tree(value));
      }
    }
    return use;
  }

  std::unordered_map<std::string, int> numbers_;
};

// Input shape declared by a Sequential's first layer, if there is no InputLayer.
json DeclaredInput(const Layer& first, const json& model_config) {
  for (const char* key : {"batch_input_shape", "batch_shape"})
    if (const json* shape = Find(first.config, key)) return *shape;
  if (!first.input_shape.is_null()) return first.input_shape;
  if (const json* shape = Find(model_config, "build_input_shape")) return *shape;
  if (first.model && !first.model->inputs.empty()) {
    const Model& model = *first.model;
    return DeclaredInput(*model.layers[static_cast<size_t>(model.inputs[0].layer)], {});
  }
  return {};
}

Status ConnectInSequence(Model& model, const json& config, const std::string& prefix) {
  if (model.layers.empty()) return Invalid("it has no layers");
  if (model.layers[0]->class_name != "InputLayer") {
    auto input = std::make_unique<Layer>();
    input->class_name = "InputLayer";
    input->name = model.layers[0]->name + "_input";
    input->path = prefix + input->name;
    input->config = {{"name", input->name}, {"batch_shape", DeclaredInput(*model.layers[0], config)}};
    if (const json* dtype = Find(model.layers[0]->config, "dtype");
        dtype && dtype->is_string() && model.layers[0]->class_name != "Embedding")
      input->config["dtype"] = *dtype;
    model.layers.insert(model.layers.begin(), std::move(input));
  }
  for (size_t i = 1; i < model.layers.size(); ++i)
    model.layers[i]->uses = {{{Argument{TensorRef{static_cast<int>(i) - 1, 0, 0}}}, {}}};
  model.inputs = {{0, 0, 0}};
  model.outputs = {{static_cast<int>(model.layers.size()) - 1, 0, 0}};
  return {};
}

Status ConnectByName(Model& model, const json& config, const json& entries) {
  const References references(model);
  bool keras3 = false;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const json* nodes = Find(entries[i], "inbound_nodes");
    if (!nodes) continue;
    if (!nodes->is_array()) return Invalid(model.layers[i]->Describe() + ": inbound_nodes is not a list");
    for (const json& node : *nodes) {
      keras3 = keras3 || node.is_object();
      FUSEBOX_ASSIGN(LayerUse use, references.Use(node).At(model.layers[i]->Describe()));
      model.layers[i]->uses.push_back(std::move(use));
    }
  }
  const json* inputs = Find(config, "input_layers");
  const json* outputs = Find(config, "output_layers");
  if (!inputs || !outputs) return Invalid("it has no input_layers or output_layers");
  FUSEBOX_ASSIGN(model.inputs, references.List(*inputs).At("input_layers"));
  FUSEBOX_ASSIGN(model.outputs, references.List(*outputs).At("output_layers"));
  return CountCalls(model, keras3);
}

Result<Model> Parse(const std::string& class_name, const json& config, const Place& place) {
  Model model;
  model.name = Text(config, "name");
  model.sequential = class_name == "Sequential";
  const json* entries = config.is_array() ? &config : Find(config, "layers");
  if (!entries || !entries->is_array())
    return Invalid("model " + place.prefix + model.name + ": it lists no layers");
  if (entries->size() > kMaxLayers) return Invalid("it has too many layers");
  for (const json& entry : *entries) {
    FUSEBOX_ASSIGN(auto layer, ParseLayer(entry, place));
    model.layers.push_back(std::move(layer));
  }
  if (model.sequential) FUSEBOX_TRY(ConnectInSequence(model, config, place.prefix));
  else FUSEBOX_TRY(ConnectByName(model, config, *entries));
  return model;
}

}  // namespace

bool IsModelClass(const std::string& name) {
  return name == "Sequential" || name == "Functional" || name == "Model";
}

Result<Model> ParseModel(const json& config, const Importers& importers) {
  const std::string class_name = Text(config, "class_name");
  const std::string package = Text(config, "registered_name");
  if (!IsModelClass(class_name))
    return Unsupported("custom model class (" + (package.empty() ? class_name : package) +
                       "), whose code is not in the file; only Sequential and functional models are "
                       "supported; save it as a SavedModel");
  return Parse(class_name, config.at("config"), {importers, ""});
}

}  // namespace fusebox::keras
