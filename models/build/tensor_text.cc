// SPDX-License-Identifier: Apache-2.0
#include "models/build/tensor_text.h"

#include <filesystem>

#include "host/graph/npy.h"
#include "models/saved_model/tensor_value.h"

namespace fusebox::models {
namespace {

using nlohmann::json;

Result<Tensor> FromText(const json& value) {
  if (!value.contains("seed")) return TensorFromJson(value);
  if (!value.contains("type")) return Invalid("type is missing; use for example f32[2,3]");
  FUSEBOX_ASSIGN(const Type type, ParseType(value["type"].get<std::string>()));
  const auto count = type.shape.element_count();
  if (!count || *count > kMaxJsonElements) return Invalid(ToString(type) + ": has unknown or too large dims");
  if (type.dtype != DType::kF32) return Invalid("seed is for f32 only; use values, fill or npy");
  models::Random random(value["seed"].get<uint64_t>());
  const auto made = random.Uniform(type.shape, -1, 1);
  return Tensor{type, Buffer::Copy(std::as_bytes(std::span(made.bytes)))};
}

}  // namespace

Result<Tensor> ReadTensor(const Document& document, const json& value, const std::string& at,
                          const std::string& folder) {
  size_t sources = 0;
  for (const char* key : {"values", "fill", "seed", "npy"}) sources += value.contains(key);
  if (sources != 1) return document.Complain(at, "needs exactly one of values, fill, seed and npy");
  if (!value.contains("npy")) {
    auto tensor = FromText(value);
    if (!tensor) return document.Complain(at, tensor.error().message);
    return tensor;
  }
  const auto path = std::filesystem::path(folder) / value["npy"].get<std::string>();
  auto tensor = ReadNpy(path.string());
  if (!tensor) return document.Complain(at + "/npy", tensor.error().message);
  if (value.contains("type") && ToString(tensor->type) != value["type"].get<std::string>())
    return document.Complain(at + "/type", path.string() + " is " + ToString(tensor->type));
  return tensor;
}

}  // namespace fusebox::models
