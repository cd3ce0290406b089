// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/keras1.h"

#include <map>
#include <string>

namespace fusebox::keras {
namespace {

using nlohmann::json;

const std::map<std::string, std::string>& Classes() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"Convolution1D", "Conv1D"},       {"Convolution2D", "Conv2D"},
      {"Convolution3D", "Conv3D"},       {"AtrousConvolution1D", "Conv1D"},
      {"AtrousConvolution2D", "Conv2D"}, {"SeparableConvolution2D", "SeparableConv2D"},
      {"TimeDistributedDense", "Dense"},
  };
  return *names;
}

// Settings that were only renamed. "dim_ordering" and kernel sizes are converted below.
const std::map<std::string, std::string>& Settings() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"nb_filter", "filters"},
      {"filter_length", "kernel_size"},
      {"subsample", "strides"},
      {"subsample_length", "strides"},
      {"border_mode", "padding"},
      {"bias", "use_bias"},
      {"atrous_rate", "dilation_rate"},
      {"pool_length", "pool_size"},
      {"stride", "strides"},
      {"inner_activation", "recurrent_activation"},
      {"p", "rate"},
      {"length", "size"},
      {"input_dtype", "dtype"},
      {"concat_axis", "axis"},
  };
  return *names;
}

Status ModernizeMerge(json& layer, json& config) {
  if (config.value("layers", json()).is_array() && !config["layers"].empty())
    return Unsupported(
        "a Merge of models in a Sequential; build the model with the functional API, where Merge has inputs");
  static const std::map<std::string, std::string> modes = {
      {"sum", "Add"},     {"mul", "Multiply"}, {"concat", "Concatenate"},
      {"ave", "Average"}, {"max", "Maximum"},  {"dot", "Dot"}};
  const json mode = config.value("mode", json());
  const auto it = mode.is_string() ? modes.find(mode.get<std::string>()) : modes.end();
  if (it == modes.end()) return Unsupported("a Merge of mode " + mode.dump());
  layer["class_name"] = it->second;
  if (it->first == "dot") {
    json axes = config.value("dot_axes", json(-1));
    if (axes.is_array())
      for (json& axis : axes)
        if (axis.is_array() && axis.size() == 1) axis = json(axis[0]);
    config["axes"] = axes;
  }
  return {};
}

// Converts [top, bottom, left, right], or these by name, to pairs.
void PairMargins(json& config, const char* key, const char* suffix) {
  if (!config.contains(key)) return;
  json& given = config[key];
  const auto named = [&](const char* side) { return given.value(side + std::string(suffix), json(0)); };
  if (given.is_object()) {
    const json across = json::array({named("left_"), named("right_")});
    const bool flat =
        !given.contains("top_" + std::string(suffix)) && !given.contains("bottom_" + std::string(suffix));
    given = flat ? across : json::array({json::array({named("top_"), named("bottom_")}), across});
  } else if (given.is_array() && given.size() == 4) {
    given = json::array({json::array({given[0], given[1]}), json::array({given[2], given[3]})});
  }
}

void RenameSettings(const std::string& class_name, json& config) {
  for (const auto& [from, to] : Settings()) {
    if (!config.contains(from) || config.contains(to)) continue;
    config[to] = config[from];
    config.erase(from);
  }
  const bool units = class_name == "Dense" || class_name == "TimeDistributedDense" || class_name == "LSTM" ||
                     class_name == "GRU" || class_name == "SimpleRNN";
  if (units && config.contains("output_dim")) config["units"] = config["output_dim"];
  // Keras 1 stores weights per gate unless all gates were computed together.
  if ((class_name == "LSTM" || class_name == "GRU") && config.value("consume_less", json()) != "gpu")
    config["gate_by_gate"] = true;
  if (class_name == "Reshape" && config.contains("dims")) config["target_shape"] = config["dims"];
  if (config.contains("nb_row") && config.contains("nb_col"))
    config["kernel_size"] =
        config.contains("kernel_dim1")
            ? json::array({config["kernel_dim1"], config["kernel_dim2"], config["kernel_dim3"]})
            : json::array({config["nb_row"], config["nb_col"]});
  if (class_name.starts_with("ZeroPadding")) PairMargins(config, "padding", "pad");
  if (const json order = config.value("dim_ordering", json()); order == "th")
    config["data_format"] = "channels_first";
}

Status ModernizeLayer(json& layer) {
  if (!layer.is_object() || !layer.contains("config")) return {};
  std::string class_name = layer.value("class_name", json()).is_string() ? layer["class_name"] : "";
  if (class_name == "Sequential" || class_name == "Model") return Modernize(layer);
  json& config = layer["config"];
  if (!config.is_object()) return {};
  if (const auto it = Classes().find(class_name); it != Classes().end()) layer["class_name"] = it->second;
  if (class_name == "Merge") FUSEBOX_TRY(ModernizeMerge(layer, config));
  if (class_name == "BatchNormalization" && config.contains("mode") && config["mode"] != 0)
    return Unsupported("a BatchNormalization of mode " + config["mode"].dump());
  RenameSettings(class_name, config);
  if (config.contains("layer")) FUSEBOX_TRY(ModernizeLayer(config["layer"]));
  return {};
}

}  // namespace

Status Modernize(json& model) {
  json& config = model["config"];
  json* layers = config.is_array()                                 ? &config
                 : config.is_object() && config.contains("layers") ? &config["layers"]
                                                                   : nullptr;
  if (!layers || !layers->is_array()) return {};
  for (json& layer : *layers) FUSEBOX_TRY(ModernizeLayer(layer));
  return {};
}

}  // namespace fusebox::keras
