// SPDX-License-Identifier: Apache-2.0
#include "converter/import/keras/import.h"

#include <algorithm>

#include "converter/import/keras/layer_call.h"
#include "converter/import/keras/weights.h"

namespace fusebox::keras {
namespace {

using nlohmann::json;

constexpr const char* kSignature = "serving_default";

// Dtype by its Keras name, or the name of a dtype policy.
std::string TypeName(const json& config) {
  const auto it = config.find("dtype");
  if (it == config.end() || it->is_null()) return "float32";
  if (it->is_string()) return it->get<std::string>();
  const json inner = it->is_object() ? it->value("config", json()) : json();
  const json policy = inner.is_object() ? inner.value("name", json()) : json();
  return policy.is_string() ? policy.get<std::string>() : it->dump();
}

// All computation is f32, regardless of the precision used in training.
bool IsOtherFloat(const std::string& name) {
  return name == "float16" || name == "bfloat16" || name == "float64" || name.starts_with("mixed_");
}

Result<DType> InputType(const json& config) {
  const std::string name = TypeName(config);
  if (IsOtherFloat(name)) return DType::kF32;
  static const std::map<std::string, DType> known = {
      {"float32", DType::kF32}, {"int32", DType::kI32}, {"int64", DType::kI64}, {"bool", DType::kBool},
      {"uint8", DType::kU8},    {"int8", DType::kI8},   {"int16", DType::kI16}, {"string", DType::kString}};
  const auto type = known.find(name);
  if (type == known.end()) return Unsupported("an input of " + name);
  return type->second;
}

Result<Shape> InputShape(const json& config) {
  const json* found = nullptr;
  for (const char* key : {"batch_shape", "batch_input_shape"})
    if (const auto it = config.find(key); !found && it != config.end() && it->is_array()) found = &*it;
  if (!found) return Invalid("it has no shape");
  std::vector<int64_t> dims;
  for (const json& dim : *found) {
    if (dim.is_null()) {
      dims.push_back(Shape::kUnknown);
    } else if (dim.is_number_integer() && dim.get<int64_t>() >= 0 && dim.get<int64_t>() <= INT32_MAX) {
      dims.push_back(dim.get<int64_t>());
    } else {
      return Invalid("its shape " + found->dump() + " is invalid");
    }
  }
  return Shape(dims);
}

Result<Type> InputTypeOf(const Layer& layer) {
  if (layer.class_name != "InputLayer")
    return Unsupported("it is an input of the model, but not an InputLayer");
  for (const char* kind : {"sparse", "ragged"})
    if (ConfigFlag(layer, kind, false)) return Unsupported(std::string("a ") + kind + " input");
  FUSEBOX_ASSIGN(const DType dtype, InputType(layer.config));
  FUSEBOX_ASSIGN(Shape shape, InputShape(layer.config));
  return Type{dtype, std::move(shape)};
}

std::string Unique(const std::vector<std::string>& taken, const std::string& wish) {
  std::string name = wish;
  for (int i = 1; std::ranges::find(taken, name) != taken.end(); ++i) name = wish + "_" + std::to_string(i);
  return name;
}

// Keras declares an embedding's indices as floats by default and casts them to integers.
Status BuildMain(BuildState& state, const Model& model, Function& f, Signature& signature) {
  std::vector<Flow> inputs;
  for (const TensorRef& ref : model.inputs) {
    const Layer& layer = *model.layers[static_cast<size_t>(ref.layer)];
    FUSEBOX_ASSIGN(Type type, InputTypeOf(layer).At(layer.Describe()));
    if (const std::string name = TypeName(layer.config); IsOtherFloat(name))
      state.notes.push_back("input " + layer.name + " is f32; the file declares " + name);
    signature.input_names.push_back(Unique(signature.input_names, layer.name));
    inputs.push_back({f.AddInput(std::move(type), signature.input_names.back()), kNoValue});
  }
  Emitter emit(state.module, f, state.registry, state.status);
  const std::vector<Flow> outputs = BuildModel(state, emit, model, inputs);
  FUSEBOX_TRY(state.status);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Layer& layer = *model.layers[static_cast<size_t>(model.outputs[i].layer)];
    signature.output_names.push_back(Unique(signature.output_names, layer.name));
    f.outputs.push_back(outputs[i].value);
  }
  f.input_names = signature.input_names;
  f.output_names = signature.output_names;
  return {};
}

Status CheckSignatures(const std::vector<std::string>& signatures) {
  for (const std::string& key : signatures) {
    if (key != kSignature)
      return NotFound("signature " + key + ": no such signature; available: " + kSignature);
  }
  return {};
}

Result<Imported> ImportFile(const std::string& path, const std::vector<std::string>& signatures,
                            Registry& registry) {
  FUSEBOX_TRY(CheckSignatures(signatures).At(path));
  FUSEBOX_ASSIGN(const Archive archive, Archive::Load(path));
  FUSEBOX_ASSIGN(Model model, ParseModel(archive.config(), Importers(registry)).At(path));
  FUSEBOX_TRY(AssignWeights(model, archive).At(path));
  Imported out;
  out.module = std::make_unique<Module>();
  out.module->source = path;
  BuildState state{.archive = archive, .module = *out.module, .registry = registry};
  Signature signature{kSignature, kSignature, {}, {}};
  Function& main = out.module->Add(signature.function);
  FUSEBOX_TRY(BuildMain(state, model, main, signature).At(path));
  out.module->signatures.push_back(std::move(signature));
  out.notes = std::move(state.notes);
  return out;
}

}  // namespace

// The JSON library throws if a value has an unexpected type.
Result<Imported> Import(const std::string& path, const std::vector<std::string>& signatures,
                        Registry& registry) try {
  return ImportFile(path, signatures, registry);
} catch (const json::exception& e) {
  return Invalid(path + ": its configuration has a value of the wrong type: " + e.what());
}

}  // namespace fusebox::keras
