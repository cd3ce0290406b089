// SPDX-License-Identifier: Apache-2.0
#include "tests/peers/tfjs.h"

#include <cstdlib>
#include <fstream>

#include "converter/import/saved_model/reader.h"
#include "converter/import/saved_model/variables.h"
#include "tests/converter/import/files.h"
#include "tests/peers/peer.h"

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

  const std::string dir = FreshDir() + "-tfjs";
  std::filesystem::create_directories(dir);
  WriteAll(dir + "/job.json", job.dump());
  const std::string command = "node '" FUSEBOX_SOURCE_DIR "/tests/peers/tfjs_run.js' '" + dir +
                              "/job.json' '" + dir + "/out.json' >'" + dir + "/log' 2>&1";
  if (std::system(command.c_str()) != 0) return Internal("tfjs: " + ReadAll(dir + "/log"));
  const json out = json::parse(ReadAll(dir + "/out.json"), nullptr, false);
  if (out.is_discarded()) return Internal("tfjs wrote no JSON: " + ReadAll(dir + "/log"));
  std::vector<Tensor> outputs;
  for (const json& output : out) outputs.push_back(FromJson(output));
  return outputs;
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
