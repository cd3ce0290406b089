// SPDX-License-Identifier: Apache-2.0
// Functions of the object graph that are not signatures, such as the function that a string signature calls
// after parsing its input.
#include <algorithm>
#include <cctype>
#include <optional>

#include "converter/import/saved_model/function_import.h"

namespace fusebox::saved_model {
namespace {

// Author's name: "_wrapped_model" for "__inference__wrapped_model_3266".
std::string ShortName(std::string name) {
  constexpr std::string_view kPrefix = "__inference_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  size_t end = name.size();
  while (end > 0 && std::isdigit(static_cast<unsigned char>(name[end - 1]))) --end;
  if (end > 1 && end < name.size() && name[end - 1] == '_') name.resize(end - 1);
  return name;
}

std::vector<std::string> NamesOf(const SavedModel& model) {
  std::vector<std::string> out;
  for (const auto& [name, function] : model.objects().concrete_functions()) out.push_back(name);
  std::ranges::sort(out);
  return out;
}

std::string Joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

bool IsTensor(tf::DataType dtype) {
  return dtype != tf::DT_RESOURCE && dtype != tf::DT_VARIANT && dtype != tf::DT_STRING;
}

// Returns the number of arguments of the caller, or nullopt if the file contradicts itself. Captured objects
// follow these arguments.
std::optional<int> GivenArguments(const SavedModel& model, const std::string& name) {
  const tf::FunctionDef* def = model.FindFunction(name);
  const auto saved = model.objects().concrete_functions().find(name);
  if (!def || saved == model.objects().concrete_functions().end()) return std::nullopt;
  const int given = def->signature().input_arg_size() - saved->second.bound_inputs_size();
  return given < 0 ? std::nullopt : std::optional(given);
}

Result<ValueId> Captured(ImportState& state, Function& f, const Capture& capture) {
  if (capture.variable >= 0) {
    FUSEBOX_ASSIGN(std::string variable, state.VariableAt(capture.variable));
    Node& handle = f.AddNode(Op::kVarHandle, {}, {{DType::kResource, fusebox::Shape::Scalar()}});
    handle.attrs.Set("shared_name", std::move(variable));
    return handle.results[0];
  }
  const tf::NodeDef* node = capture.constant.empty() ? nullptr : state.model.FindNode(capture.constant);
  if (!node || !node->attr().contains("value"))
    return Unsupported("it captures an object that is neither a variable nor a constant (a table, an asset)");
  FUSEBOX_ASSIGN(const Tensor value, ToTensor(node->attr().at("value").tensor()));
  return f.AddConst(value, node->name());
}

}  // namespace

std::vector<std::string> FunctionsOfTensors(const SavedModel& model) {
  std::vector<std::string> out;
  for (const std::string& name : NamesOf(model)) {
    const auto given = GivenArguments(model, name);
    if (!given || *given == 0 || name.starts_with("__inference_signature_wrapper")) continue;
    const auto& args = model.FindFunction(name)->signature().input_arg();
    const bool tensors = std::all_of(args.begin(), args.begin() + *given,
                                     [](const auto& arg) { return IsTensor(arg.type()); });
    if (tensors) out.push_back(name);
  }
  return out;
}

std::string NameOfFunction(const SavedModel& model, const std::string& name) {
  const std::string wish = ShortName(name);
  if (model.FindSignature(wish)) return name;
  const auto found = SavedFunctionOf(model, wish);
  return found && *found == name ? wish : name;
}

Result<std::string> SavedFunctionOf(const SavedModel& model, const std::string& wanted) {
  std::vector<std::string> same;
  for (const std::string& name : NamesOf(model)) {
    if (name == wanted) return name;
    if (ShortName(name) == wanted) same.push_back(name);
  }
  if (same.size() > 1) return Invalid("there are several functions of that name: " + Joined(same));
  return same.empty() ? std::string() : same[0];
}

Status ImportSavedFunction(ImportState& state, const std::string& name) {
  const auto given = GivenArguments(state.model, name);
  if (!given) return Invalid("function " + name + " is not in the library, or has too few arguments");
  FUSEBOX_ASSIGN(const std::vector<Capture> captures, state.variables.CapturesOf(name));
  const tf::FunctionDef& def = *state.model.FindFunction(name);
  const auto& args = def.signature().input_arg();
  std::string key = ShortName(name);
  for (const Signature& other : state.module.signatures)
    if (other.key == key) key = name;
  Function& f = state.module.Add(state.module.UniqueName(key + "_signature"));
  Signature signature{key, f.name, {}, {}};
  std::vector<ValueId> operands;
  for (int i = 0; i < *given; ++i) {
    if (!IsTensor(args[i].type()) && args[i].type() != tf::DT_STRING)
      return Unsupported("its argument " + args[i].name() + " is not a tensor");
    operands.push_back(f.AddInput({ToDType(args[i].type()), ArgShape(def, i)}, args[i].name()));
    signature.input_names.push_back(args[i].name());
  }
  for (const Capture& capture : captures) {
    FUSEBOX_ASSIGN(const ValueId v, Captured(state, f, capture));
    operands.push_back(v);
  }
  std::vector<Type> types;
  for (const auto& arg : def.signature().output_arg()) {
    types.push_back({ToDType(arg.type()), fusebox::Shape()});
    signature.output_names.push_back(arg.name());
  }
  if (types.empty()) return Unsupported("it has no outputs");
  Node& call = f.AddNode(Op::kCall, std::move(operands), std::move(types));
  call.attrs.Set("subgraph", FunctionRef{name});
  call.location.name = name;
  f.outputs = call.results;
  f.input_names = signature.input_names;
  f.output_names = signature.output_names;
  state.wanted.push_back(name);
  state.module.signatures.push_back(std::move(signature));
  return {};
}

}  // namespace fusebox::saved_model
