// SPDX-License-Identifier: Apache-2.0
// Lambda layers whose function is one of TensorFlow or Keras, stored by name and module.
#include <algorithm>
#include <array>
#include <map>

#include "converter/import/keras/layers/operation.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

struct NamedFunction {
  std::string module, name;
};

std::string TextOf(const json& from, const char* key) {
  const json value = from.is_object() ? from.value(key, json()) : json();
  return value.is_string() ? value.get<std::string>() : std::string();
}

// Keras 2 stores the name beside `module`, Keras 3 an object; no name for marshalled code.
NamedFunction FunctionOf(const json& config) {
  const json function = config.value("function", json());
  if (function.is_string() && TextOf(config, "function_type") == "function")
    return {TextOf(config, "module"), function.get<std::string>()};
  if (TextOf(function, "class_name") == "function")
    return {TextOf(function, "module"), TextOf(function, "config")};
  return {};
}

// "expand_dims_v2" is TensorFlow's own name of tf.expand_dims.
std::string PublicName(std::string name) {
  static const auto* const renamed = new std::map<std::string, std::string>{{"resize_images", "resize"}};
  if (name.ends_with("_v2")) name.resize(name.size() - 3);
  const auto it = renamed->find(name);
  return it == renamed->end() ? name : it->second;
}

// Functions of keras.backend with the arguments and the defaults of TensorFlow's.
constexpr std::array kBackend = {"abs",      "cos",    "elu",  "exp",          "log",     "max", "mean",
                                 "min",      "prod",   "sign", "l2_normalize", "sigmoid", "sin", "softplus",
                                 "softsign", "square", "std",  "sum",          "tanh",    "var"};

// keras.applications: the way in which a family of networks scales pixels.
std::string_view ScalingOf(const std::string& module) {
  static const auto* const modes = new std::map<std::string, std::string_view>{{"mobilenet", "tf"},
                                                                               {"mobilenet_v2", "tf"},
                                                                               {"inception_v3", "tf"},
                                                                               {"inception_resnet_v2", "tf"},
                                                                               {"xception", "tf"},
                                                                               {"resnet_v2", "tf"},
                                                                               {"nasnet", "tf"},
                                                                               {"resnet", "caffe"},
                                                                               {"resnet50", "caffe"},
                                                                               {"vgg16", "caffe"},
                                                                               {"vgg19", "caffe"},
                                                                               {"densenet", "torch"},
                                                                               {"mobilenet_v3", "none"},
                                                                               {"efficientnet", "none"},
                                                                               {"efficientnet_v2", "none"},
                                                                               {"convnext", "none"},
                                                                               {"imagenet_utils", "caffe"}};
  const auto it = modes->find(module.substr(module.rfind('.') + 1));
  return module.find("applications.") == std::string::npos || it == modes->end() ? "" : it->second;
}

ValueId PerChannel(LayerCall& c, const std::vector<float>& values) {
  return c.emit().Const({{DType::kF32, {3}}, Buffer::Of<float>(values)});
}

// Pixels from 0 to 255 as the network expects them.
void ScalePixels(LayerCall& c, std::string_view mode) {
  const std::string said = TextArgument(c, kKeywordOnly, {"mode"}, mode);
  const std::string format = TextArgument(c, kKeywordOnly, {"data_format"}, "channels_last");
  if (format != "channels_last") return c.emit().Refuse("its data_format " + format);
  Emitter& e = c.emit();
  const ValueId x = e.Cast(c.in(), DType::kF32);
  if (said == "none") return c.AddOutput(x);
  if (said == "tf") return c.AddOutput(e.Op("Sub", {e.Op("RealDiv", {x, e.F32(127.5)}), e.F32(1)}));
  if (said == "torch") {
    const ValueId unit = e.Op("RealDiv", {x, e.F32(255)});
    const ValueId centered = e.Op("Sub", {unit, PerChannel(c, {0.485F, 0.456F, 0.406F})});
    return c.AddOutput(e.Op("RealDiv", {centered, PerChannel(c, {0.229F, 0.224F, 0.225F})}));
  }
  if (said != "caffe") return e.Refuse("its mode " + said);
  const ValueId swapped = e.Op("ReverseV2", {x, e.I32s({e.rank(x) - 1})});
  c.AddOutput(e.Op("Sub", {swapped, PerChannel(c, {103.939F, 116.779F, 123.68F})}));
}

bool IsBackend(const std::string& module) {
  return module.ends_with("keras.backend") || module.ends_with("keras.src.backend");
}

// Keras 3 stores functions without their module, and looks for activations itself.
void Build(LayerCall& call, const NamedFunction& f) {
  const bool unnamed = f.module == "builtins" || f.module.empty();
  const bool keras = f.module.starts_with("keras.ops") || f.module.starts_with("keras.src.ops");
  const std::string name = PublicName(f.name);
  if (const std::string_view mode = ScalingOf(f.module); name == "preprocess_input" && !mode.empty())
    return ScalePixels(call, mode);
  const bool activation = unnamed || f.module.find("keras") != std::string::npos;
  if (activation && IsActivation(name) && call.keywords().empty())
    return call.AddOutput(Activation(call, json(name), call.in()));
  const bool tensorflow = f.module.starts_with("tensorflow.") && f.module.find("keras") == std::string::npos;
  const bool backend = IsBackend(f.module) && std::ranges::find(kBackend, name) != kBackend.end();
  if (call.keras() >= 3 ? keras || (tensorflow && IsUnary(name)) : tensorflow || backend)
    return BuildFunction(call, name);
  call.emit().Refuse("the Python function " + f.name + (unnamed ? "" : " of " + f.module) +
                     ", whose code is not in the file; save the model as a SavedModel (model.export, "
                     "tf.saved_model.save), which stores it as TensorFlow ops");
}

void Lambda(LayerCall& c) {
  const NamedFunction function = FunctionOf(c.config());
  if (function.name.empty()) return c.emit().Refuse(WhyUnknown("Lambda"));
  if (c.Has("mask")) return c.emit().Refuse("its mask, a Python function");
  Layer layer;
  layer.class_name = function.name;
  layer.name = c.layer().name;
  layer.path = c.layer().path;
  layer.config = json::object();
  std::map<std::string, Given> keywords;
  const json arguments = c.config().value("arguments", json());
  if (arguments.is_object())
    for (const auto& [name, value] : arguments.items()) keywords[name] = {value};
  LayerCall call(c.state(), c.emit(), layer, c.args(), std::move(keywords));
  Build(call, function);
  if (const std::string unread = call.UnreadKeyword(); c.emit().ok() && !unread.empty())
    return c.emit().Refuse("the argument " + unread + " of " + function.name);
  for (const Flow& flow : call.TakeResults()) c.AddOutput(flow.value);
}

}  // namespace

std::span<const LayerRow> LambdaLayers() {
  static constexpr LayerRow kTable[] = {{"Lambda", Lambda, nullptr, MaskRule::kStop}};
  return kTable;
}

}  // namespace fusebox::keras
