// SPDX-License-Identifier: Apache-2.0
#include "cli/output_dir.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "host/graph/npy.h"

namespace fusebox::cli {
namespace {

using Json = nlohmann::ordered_json;

// By TfLiteType value, from 1.
constexpr DType kTypes[] = {
    DType::kF32,  DType::kI32,       DType::kU8,      DType::kI64,      DType::kString, DType::kBool,
    DType::kI16,  DType::kComplex64, DType::kI8,      DType::kF16,      DType::kF64,    DType::kComplex128,
    DType::kU64,  DType::kResource,  DType::kVariant, DType::kU32,      DType::kU16,    DType::kI4,
    DType::kBF16, DType::kI2,        DType::kU4,      DType::kF8E4M3FN, DType::kF8E5M2,
};

Json Described(const std::vector<Port>& ports, const std::vector<Tensor>& values) {
  Json list = Json::array();
  for (size_t i = 0; i < values.size(); ++i)
    list.push_back({{"name", ports[i].tensor},
                    {"dtype", TfLiteTypeOf(values[i].type.dtype)},
                    {"shape", values[i].type.shape.dims()}});
  return list;
}

}  // namespace

int TfLiteTypeOf(DType type) {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i] == type) return static_cast<int>(i) + 1;
  }
  return 0;
}

Status WriteOutputDir(const std::string& dir, const Ports& ports, const std::vector<Tensor>& inputs,
                      const std::vector<std::vector<Tensor>>& runs) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) return IoError(dir + ": " + error.message());
  for (size_t i = 0; i < inputs.size(); ++i)
    FUSEBOX_TRY(WriteNpy(dir + "/in" + std::to_string(i) + ".npy", inputs[i]));
  for (size_t r = 0; r < runs.size(); ++r) {
    for (size_t i = 0; i < runs[r].size(); ++i)
      FUSEBOX_TRY(
          WriteNpy(dir + "/run" + std::to_string(r) + ".out" + std::to_string(i) + ".npy", runs[r][i]));
  }
  const Json io = {{"inputs", Described(ports.inputs, inputs)},
                   {"outputs", Described(ports.outputs, runs.at(0))}};
  const std::string text = io.dump(1, ' ', true, Json::error_handler_t::replace);
  return WriteFile(dir + "/io.json", std::as_bytes(std::span(text)));
}

}  // namespace fusebox::cli
