// SPDX-License-Identifier: Apache-2.0
#include "converter/convert.h"
#include "tests/fuzz/targets.h"
#include "tests/testing/keras_writer.h"

namespace fusebox::fuzz {
namespace {

using nlohmann::json;

Status ConvertKeras(const std::string& path) {
  static const auto registry = [] {
    Config config;
    config.search_default_path = false;
    auto made = Registry::Create(config);
    FUSEBOX_CHECK(made.has_value());
    return *made;
  }();
  auto conversion = converter::FromKeras(path);
  conversion.options.registry = registry;
  FUSEBOX_ASSIGN(const auto converted, conversion.Convert());
  FUSEBOX_CHECK(converted.Write(ScratchDir() + "/out.tflite").has_value());
  return {};
}

json Layer(const char* class_name, const char* name, json config) {
  config["name"] = name;
  return {{"class_name", class_name}, {"config", std::move(config)}};
}

json Sequential(const char* name, const std::vector<int64_t>& input, json layers) {
  layers.insert(layers.begin(), Layer("InputLayer", "x", {{"batch_shape", input}, {"dtype", "float32"}}));
  return Layer("Sequential", name, {{"layers", std::move(layers)}});
}

// One model per way in which layers are put together.
std::vector<json> Configs() {
  const json dense = Layer("Dense", "d", {{"units", 3}, {"activation", "relu"}});
  const json conv = Layer(
      "Conv2D", "c", {{"filters", 2}, {"kernel_size", {2, 2}}, {"strides", {1, 1}}, {"padding", "same"}});
  const json lstm = Layer("LSTM", "l", {{"units", 2}, {"return_sequences", true}, {"activation", "tanh"}});
  json tensor = {{"class_name", "__keras_tensor__"}, {"config", {{"keras_history", {"x", 0, 0}}}}};
  json add = Layer("Add", "a", json::object()), input = Layer("InputLayer", "x", {{"batch_shape", {1, 4}}});
  add["inbound_nodes"] =
      json::array({{{"args", json::array({json::array({tensor, tensor})})}, {"kwargs", json::object()}}});
  input["inbound_nodes"] = json::array();
  json functional =
      Layer("Functional", "model",
            {{"layers", {input, add}}, {"input_layers", {"x", 0, 0}}, {"output_layers", {"a", 0, 0}}});
  const json pool = Layer("MaxPooling2D", "p", {{"pool_size", {2, 2}}}),
             flat = Layer("Flatten", "f", json::object());
  const json both = Layer("Bidirectional", "b", {{"layer", lstm}, {"merge_mode", "concat"}});
  const json inner = Sequential("inner", {1, 4}, json::array({dense}));
  // Compilers differ in what braces around a single value are.
  return {Sequential("model", {1, 4}, json::array({dense})),
          Sequential("model", {1, 4, 4, 1}, json::array({conv, pool, flat})),
          Sequential("model", {1, 3, 4}, json::array({lstm})),
          Sequential("model", {1, 3, 4}, json::array({both})),
          Sequential("model", {1, 4}, json::array({inner})),
          functional};
}

// For all of them together.
const std::map<std::string, Tensor>& Weights() {
  static const auto* const weights = [] {
    auto* made = new std::map<std::string, Tensor>;
    const auto put = [&](const std::string& path, const std::vector<int64_t>& shape) {
      const std::vector<float> values(static_cast<size_t>(*Shape(shape).element_count()), 0.5f);
      (*made)["layers/" + path] = {{DType::kF32, Shape(shape)}, Buffer::Of<float>(values)};
    };
    for (const std::string where : {"", "sequential/layers/"}) {
      put(where + "dense/vars/0", {4, 3});
      put(where + "dense/vars/1", {3});
    }
    put("conv2d/vars/0", {2, 2, 1, 2});
    put("conv2d/vars/1", {2});
    for (const std::string where :
         {"lstm/", "bidirectional/forward_layer/", "bidirectional/backward_layer/"}) {
      put(where + "cell/vars/0", {4, 8});
      put(where + "cell/vars/1", {2, 8});
      put(where + "cell/vars/2", {8});
    }
    return made;
  }();
  return *weights;
}

std::string WrittenKeras(const json& config, const std::map<std::string, Tensor>& weights = Weights()) {
  const std::string path = ScratchDir() + "/seed.keras";
  testing::WriteKeras(path, config, weights);
  return Contents(path);
}

}  // namespace

Status RunKeras(std::span<const std::byte> bytes) {
  const std::string path = ScratchDir() + "/model.bin";
  WriteScratch(path, bytes);
  return ConvertKeras(path);
}

std::vector<std::string> KerasSeeds() {
  std::vector<std::string> seeds;
  for (const json& config : Configs()) seeds.push_back(WrittenKeras(config));
  seeds.push_back(WrittenKeras(Configs()[3], testing::NamedOnWindows(Weights())));
  const auto weight = [](const std::string& path) { return Weights().at("layers/" + path); };
  const std::string path = ScratchDir() + "/seed.h5";
  testing::WriteH5(
      path, {Configs()[0], {{"d", {{"kernel", weight("dense/vars/0")}, {"bias", weight("dense/vars/1")}}}}});
  seeds.push_back(Contents(path));
  return seeds;
}

Status RunKerasConfig(std::span<const std::byte> bytes) {
  static const std::string weights = [] {
    WrittenKeras(Configs()[0]);
    return Contents(ScratchDir() + "/seed.keras.weights");
  }();
  const std::string path = ScratchDir() + "/model.keras";
  const std::string config(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  testing::WriteZip(path, {{"config.json", config}, {"model.weights.h5", weights}});
  return ConvertKeras(path);
}

std::vector<std::string> KerasConfigSeeds() {
  std::vector<std::string> seeds;
  for (const json& config : Configs()) seeds.push_back(config.dump());
  return seeds;
}

}  // namespace fusebox::fuzz
