// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/tfjs.h"

#include <cstdlib>
#include <fstream>

#include "converter/import/keras/archive.h"
#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/variables.h"
#include "tests/converter/import/files.h"
#include "tests/testing/peer.h"

namespace fusebox::testing {
namespace {

using nlohmann::json;

json ToJson(const Tensor& tensor) {
  json values = json::array();
  if (tensor.type.dtype == DType::kI32) {
    for (const int32_t v : tensor.data.As<int32_t>()) values.push_back(v);
  } else {
    for (const float v : tensor.data.As<float>()) values.push_back(v);
  }
  return {{"shape", tensor.type.shape.dims()},
          {"dtype", tensor.type.dtype == DType::kI32 ? "int32" : "float32"},
          {"values", std::move(values)}};
}

Tensor FromJson(const json& from) {
  const auto values = from.at("values").get<std::vector<float>>();
  return {{DType::kF32, Shape(from.at("shape").get<std::vector<int64_t>>())}, Buffer::Of<float>(values)};
}

}  // namespace

Result<json> RunTfjsScript(const std::string& script, json job, const std::string& data) {
  const std::string dir = FreshDir() + "-tfjs";
  std::filesystem::create_directories(dir);
  job["data"] = dir + "/data.bin";
  WriteAll(dir + "/data.bin", data);
  WriteAll(dir + "/job.json", job.dump());
  const std::string command = "node '" FUSEBOX_SOURCE_DIR "/tests/peers/" + script + "' '" + dir +
                              "/job.json' '" + dir + "/out.json' >'" + dir + "/log' 2>&1";
  if (std::system(command.c_str()) != 0) return Internal("tfjs: " + ReadAll(dir + "/log"));
  const json out = json::parse(ReadAll(dir + "/out.json"), nullptr, false);
  if (out.is_discarded()) return Internal("tfjs wrote no JSON: " + ReadAll(dir + "/log"));
  return out;
}

std::vector<Tensor> TensorsOf(const json& from) {
  std::vector<Tensor> outputs;
  for (const json& output : from) outputs.push_back(FromJson(output));
  return outputs;
}

Result<std::vector<Tensor>> RunTfjs(const std::vector<KerasLayer>& layers,
                                    const std::vector<Tensor>& inputs) {
  std::string why;
  const std::string package = PeerFile("node_modules/@tensorflow/tfjs", &why);
  if (package.empty()) return NotFound(why);
  json job = {{"package", package}, {"layers", json::array()}, {"inputs", json::array()}};
  for (const KerasLayer& layer : layers) {
    json weights = json::array();
    for (const Tensor& weight : layer.weights) weights.push_back(ToJson(weight));
    job["layers"].push_back(
        {{"name", layer.name}, {"config", layer.config}, {"weights", std::move(weights)}});
  }
  for (const Tensor& input : inputs) job["inputs"].push_back(ToJson(input));

  FUSEBOX_ASSIGN(const json out, RunTfjsScript("tfjs_run.js", job, {}));
  return TensorsOf(out);
}

Result<KerasModel> ReadKeras(const std::string& file, std::vector<Tensor> inputs) {
  FUSEBOX_ASSIGN(const keras::Archive archive, keras::Archive::Load(file));
  KerasModel out{archive.config(), {}, std::move(inputs)};
  const json& config = out.config["config"];
  for (const json& layer : config.is_array() ? config : config["layers"]) {
    std::string name = layer["config"].value("name", "");
    if (name.empty()) name = layer.value("name", "");
    FUSEBOX_ASSIGN(const auto datasets, archive.LayerWeights(name));
    if (!datasets || datasets->empty()) continue;
    out.weights.emplace_back(name, std::vector<Tensor>());
    for (const std::string& dataset : *datasets) {
      FUSEBOX_ASSIGN(Tensor weight, archive.Read(dataset));
      out.weights.back().second.push_back(std::move(weight));
    }
  }
  return out;
}

Result<std::vector<Result<std::vector<Tensor>>>> RunTfjs(const std::vector<KerasModel>& models) {
  std::string why, data;
  const std::string package = PeerFile("node_modules/@tensorflow/tfjs", &why);
  if (package.empty()) return NotFound(why);
  const auto put = [&](const Tensor& tensor) {
    const size_t at = data.size();
    data.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    return json{{"shape", tensor.type.shape.dims()},
                {"dtype", tensor.type.dtype == DType::kI32 ? "int32" : "float32"},
                {"offset", at}};
  };
  json job = {{"package", package}, {"models", json::array()}};
  for (const KerasModel& model : models) {
    json one = {{"config", model.config}, {"layers", json::array()}, {"inputs", json::array()}};
    for (const auto& [name, weights] : model.weights) {
      json layer = {{"name", name}, {"weights", json::array()}};
      for (const Tensor& weight : weights) layer["weights"].push_back(put(weight));
      one["layers"].push_back(std::move(layer));
    }
    for (const Tensor& input : model.inputs) one["inputs"].push_back(put(input));
    job["models"].push_back(std::move(one));
  }
  FUSEBOX_ASSIGN(const json out, RunTfjsScript("tfjs_keras.js", job, data));
  std::vector<Result<std::vector<Tensor>>> results;
  for (const json& outputs : out) {
    if (outputs.is_object()) results.emplace_back(Unsupported("tfjs: " + outputs.value("error", "")));
    else results.emplace_back(TensorsOf(outputs));
  }
  return results;
}

Result<std::vector<Tensor>> Weights(const std::string& saved_model, const std::vector<std::string>& keys) {
  FUSEBOX_ASSIGN(const saved_model::SavedModel model, saved_model::LoadSavedModel(saved_model));
  FUSEBOX_ASSIGN(const saved_model::Variables variables, saved_model::Variables::Bind(model));
  std::vector<Tensor> out;
  for (const std::string& key : keys) {
    int found = -1;
    for (size_t i = 0; i < variables.all().size(); ++i) {
      if (variables.all()[i].key.starts_with(key)) found = static_cast<int>(i);
    }
    if (found < 0) return NotFound(saved_model + ": no variable with the key " + key);
    FUSEBOX_ASSIGN(std::vector<int64_t> shape, variables.Shape(found));
    FUSEBOX_ASSIGN(Buffer data, variables.Read(found));
    out.push_back({{DType::kF32, Shape(std::move(shape))}, std::move(data)});
  }
  return out;
}

}  // namespace fusebox::testing
