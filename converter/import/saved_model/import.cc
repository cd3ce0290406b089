// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/import.h"

#include <algorithm>

#include "converter/import/saved_model/function_import.h"
#include "host/fusion/fusion.h"

namespace fusebox::saved_model {

Result<std::string> ImportState::VariableOf(const std::string& node) {
  const auto number = variables.OfNode(node);
  if (!number) return Invalid("unknown variable " + node);
  return VariableAt(*number);
}

Result<std::string> ImportState::VariableAt(int number) {
  if (const auto it = variable_names.find(number); it != variable_names.end()) return it->second;
  const auto& source = variables[number];
  const std::string node = source.node.empty() ? "variable " + std::to_string(number) : source.node;
  fusebox::Variable made;
  made.name = source.name.empty() ? node : source.name;
  if (module.FindVariable(made.name)) made.name = node;
  FUSEBOX_ASSIGN(made.initial, variables.Read(number));
  FUSEBOX_ASSIGN(std::vector<int64_t> dims, variables.Shape(number));
  made.type = {ToDType(source.dtype), fusebox::Shape(std::move(dims))};
  variable_names[number] = made.name;
  module.variables.push_back(std::move(made));
  return module.variables.back().name;
}

void ImportState::FillTable(const std::string& node, Node& handle) {
  const auto number = static_cast<int64_t>(table_numbers.size());
  handle.attrs.Set("table_id", table_numbers.emplace(node, number).first->second);
  auto table = tables.Of(node);
  if (!table) {
    handle.attrs.Set("reason", table.error().message);
    return;
  }
  handle.attrs.Set("keys", std::move(table->keys));
  handle.attrs.Set("values", std::move(table->values));
}

namespace {

std::string Functions(ImportState& state);

Status ImportEntry(ImportState& state, const std::string& key) {
  if (const tf::SignatureDef* def = state.model.FindSignature(key)) return ImportSignature(state, key, *def);
  FUSEBOX_ASSIGN(const std::string function, SavedFunctionOf(state.model, key));
  if (!function.empty()) return ImportSavedFunction(state, function);
  std::string known;
  for (const auto& k : state.model.Signatures()) known += (known.empty() ? "" : ", ") + k;
  if (!known.empty()) return NotFound("no such signature; available: " + known);
  const std::string functions = Functions(state);
  return NotFound("no such function, and the model has no signatures" +
                  (functions.empty() ? "" : "; functions that can be converted: " + functions));
}

// One signature with all functions it reaches; a failure leaves nothing in the module.
Status ImportOne(ImportState& state, const std::string& key) {
  const size_t functions = state.module.functions.size();
  const size_t signatures = state.module.signatures.size();
  Status status = ImportEntry(state, key);
  while (status && !state.wanted.empty()) {
    const std::string name = std::move(state.wanted.back());
    state.wanted.pop_back();
    if (const tf::FunctionDef* function = state.model.FindFunction(name))
      status = ImportFunction(state, *function);
  }
  if (status) return {};
  state.wanted.clear();
  state.module.functions.resize(functions);
  state.module.signatures.resize(signatures);
  return status;
}

// Importable functions other than signatures, in --signature form, limited in number. They leave functions in
// the module, but the import has failed by then.
std::string Functions(ImportState& state) {
  constexpr int kMost = 8;
  constexpr int kMostTried = 32;
  std::string out;
  int count = 0;
  int tried = 0;
  for (const std::string& name : FunctionsOfTensors(state.model)) {
    if (count == kMost || tried++ == kMostTried) return out + ", ...";
    if (!ImportOne(state, name)) continue;
    out += (count++ > 0 ? ", " : "") + NameOfFunction(state.model, name);
  }
  return out;
}

// Why nothing can be converted, and the alternatives.
std::string WhyNothing(ImportState& state) {
  const SavedModel& model = state.model;
  if (const std::string functions = Functions(state); !functions.empty())
    return "it has no signatures; functions that can be converted: " + functions + " (use --signature NAME)";
  const std::string how = "; save it again with signatures: tf.saved_model.save(model, dir, signatures=...)";
  if (!model.objects().concrete_functions().empty())
    return "it has no signatures, and of its " + std::to_string(model.objects().concrete_functions().size()) +
           " functions none can be imported (no tensor arguments, or objects that are not in the file)" + how;
  if (model.graph().node_size() > 0 && !model.has_objects())
    return "it has no signatures, so the inputs and outputs among its " +
           std::to_string(model.graph().node_size()) +
           " nodes are unknown; name them with --inputs and --outputs, or save it again with signatures: "
           "tf.saved_model.save(model, dir, signatures=...)";
  return "it has neither signatures nor functions, only weights" + how;
}

// A function that ignores its arguments only declares types.
void MarkPlaceholders(Module& module) {
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (node->is(Op::kStablehloComposite))
        if (Function* body = module.Find(node->body)) body->placeholder = IsPlaceholder(module, *body);
}

Result<Imported> ImportModel(SavedModel& model, const std::string& source,
                             const std::vector<std::string>& signatures) {
  FUSEBOX_ASSIGN(const Variables variables, Variables::Bind(model));
  Imported out{
      .module = std::make_unique<Module>(), .refused = {}, .notes = model.warnings, .unsigned_file = false};
  out.module->source = source;
  out.notes.insert(out.notes.end(), variables.warnings().begin(), variables.warnings().end());
  const LookupTables tables(model, variables);
  ImportState state{.model = model, .variables = variables, .module = *out.module, .tables = tables};
  auto all = model.Signatures();
  // The first signature is the default one of a file.
  std::ranges::stable_partition(all, [](const std::string& key) { return key == kDefaultSignature; });
  for (const std::string& key : signatures.empty() ? all : signatures) {
    const std::string place = model.frozen ? model.path : model.path + ": signature " + key;
    Status status = ImportOne(state, key).At(place);
    if (status) continue;
    if (!signatures.empty()) return std::unexpected(status.error());
    out.refused.emplace_back(key, status.error().message);
  }
  if (out.module->signatures.empty()) {
    if (out.refused.empty()) return Invalid(source + ": " + WhyNothing(state));
    const std::string functions = Functions(state);
    return Invalid(out.refused.front().second +
                   (functions.empty() ? "" : "; functions for --signature: " + functions));
  }
  MarkPlaceholders(*out.module);
  return out;
}

}  // namespace

Result<Imported> Import(const std::string& dir, const std::vector<std::string>& signatures,
                        const Endpoints& endpoints) {
  FUSEBOX_ASSIGN(SavedModel model, LoadSavedModel(dir));
  if (!endpoints.inputs.empty() || !endpoints.outputs.empty()) {
    if (!signatures.empty())
      return Invalid(dir + ": a signature has inputs and outputs of its own; select either");
    FUSEBOX_TRY(SetEndpoints(model, endpoints).At(model.path));
  }
  return ImportModel(model, dir, signatures);
}

Result<Imported> ImportFrozenGraph(const std::string& path, const Endpoints& endpoints) {
  FUSEBOX_ASSIGN(SavedModel model, LoadFrozenGraph(path));
  FUSEBOX_TRY(SetEndpoints(model, endpoints).At(path));
  return ImportModel(model, path, {});
}

}  // namespace fusebox::saved_model
