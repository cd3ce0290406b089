// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/lookup_tables.h"

#include <algorithm>
#include <filesystem>

#include "converter/import/saved_model/function_import.h"
#include "converter/import/saved_model/import.h"
#include "converter/import/saved_model/text_table.h"
#include "converter/import/tables/lookup.h"

namespace fusebox::saved_model {
namespace {

bool IsFiller(std::string_view op) {
  return op == "LookupTableImportV2" || op == "LookupTableImport" || op == "InitializeTableV2" ||
         op == "InitializeTable" || op == "InitializeTableFromTextFileV2" ||
         op == "InitializeTableFromTextFile";
}

// True if `file` does not lead out of the folder through a link.
bool LiesIn(const std::filesystem::path& folder, const std::filesystem::path& file) {
  std::error_code error;
  const auto root = std::filesystem::weakly_canonical(folder, error);
  if (error) return false;
  const auto real = std::filesystem::weakly_canonical(file, error);
  return !error && std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

DType TypeOf(const tf::NodeDef& node, const std::string& attr) {
  const auto it = node.attr().find(attr);
  return it == node.attr().end() ? DType::kNone : ToDType(it->second.type());
}

}  // namespace

LookupTables::LookupTables(const SavedModel& model, const Variables& variables)
    : model_(model), variables_(variables) {
  bool any = false;
  for (const tf::NodeDef& node : model.graph().node()) any |= converter::IsLookupTable(node.op());
  if (!any) return;
  scopes_.push_back(std::make_unique<Scope>());
  Visit(*scopes_.back(), 0);
}

const LookupTables::Names& LookupTables::NamesOf(const tf::FunctionDef* function) {
  const auto [it, fresh] = names_.try_emplace(function);
  if (!fresh) return it->second;
  for (const tf::NodeDef& node : function ? function->node_def() : model_.graph().node()) {
    it->second.nodes.emplace(node.name(), &node);
    if (node.op() == "AssignVariableOp" && node.input_size() > 1)
      it->second.assigned.emplace(node.input(0), &node);
  }
  return it->second;
}

void LookupTables::Visit(const Scope& scope, int depth) {
  constexpr int kDeepest = 3;
  constexpr size_t kMostNodes = size_t{1} << 20;
  const auto& nodes = scope.function ? scope.function->node_def() : model_.graph().node();
  visited_ += static_cast<size_t>(nodes.size());
  if (visited_ > kMostNodes) return;
  NamesOf(scope.function);
  for (const tf::NodeDef& node : nodes) {
    if (IsFiller(node.op()) && node.input_size() >= 2) {
      const Found table = Source(&scope, node.input(0));
      if (!table.node || !converter::IsLookupTable(table.node->op())) continue;
      const Found values = Source(&scope, node.input(1));
      Add(table.node->name(), {&node, &scope, values.node && values.node->op() == "RestoreV2"});
    } else if (const tf::FunctionDef* callee = depth < kDeepest ? model_.Callee(node) : nullptr) {
      scopes_.push_back(std::make_unique<Scope>(Scope{&scope, &node, callee}));
      Visit(*scopes_.back(), depth + 1);
    }
  }
}

// A table has one initializer. If there are several, constants take precedence over checkpoint values.
void LookupTables::Add(const std::string& table, const Filler& filler) {
  const auto [it, fresh] = fillers_.emplace(table, filler);
  Filler& before = it->second;
  if (fresh || filler.restored) return;
  if (before.restored) {
    before = filler;
    return;
  }
  before.doubtful |= before.node->input_size() != filler.node->input_size();
  for (int i = 1; !before.doubtful && i < filler.node->input_size(); ++i) {
    const Found a = Source(before.scope, before.node->input(i));
    const Found b = Source(filler.scope, filler.node->input(i));
    before.doubtful = !a.node || a.node != b.node || a.output != b.output;
  }
}

LookupTables::Found LookupTables::Source(const Scope* scope, std::string_view input) const {
  int steps = 32;
  return Source(scope, input, steps);
}

// The node that produces an input's value, through identities, function calls and variables.
LookupTables::Found LookupTables::Source(const Scope* scope, std::string_view input, int& steps) const {
  std::string text(input);
  while (steps-- > 0) {
    const auto edge = ParseEdge(text, scope->function != nullptr);
    if (!edge || edge->control) return {};
    if (scope->function) {
      const auto& args = scope->function->signature().input_arg();
      int number = 0;
      while (number < args.size() && args[number].name() != edge->node) ++number;
      if (number < args.size()) {
        if (number >= scope->call->input_size()) return {};
        text = scope->call->input(number);
        scope = scope->caller;
        continue;
      }
    }
    const auto& nodes = names_.at(scope->function).nodes;
    const auto it = nodes.find(edge->node);
    if (it == nodes.end()) return {};
    const tf::NodeDef& node = *it->second;
    if (node.op() == "ReadVariableOp" && node.input_size() > 0) {
      const Found handle = Source(scope, node.input(0), steps);
      return handle.node ? Assigned(handle, steps) : Found();
    }
    if (node.op() != "Identity" || node.input_size() == 0) return {&node, scope, edge->index};
    text = node.input(0);
  }
  return {};
}

// The value assigned to a variable, or its handle if nothing assigns to it. Of several values, the one from
// the checkpoint comes last.
LookupTables::Found LookupTables::Assigned(const Found& handle, int& steps) const {
  const auto [first, last] = names_.at(handle.scope->function).assigned.equal_range(handle.node->name());
  if (first == last) return handle;
  Found value;
  for (auto it = first; it != last; ++it) {
    value = Source(handle.scope, it->second->input(1), steps);
    if (value.node && value.node->op() == "RestoreV2") return value;
  }
  return std::next(first) == last ? value : Found();
}

Result<Tensor> LookupTables::Restored(const Found& from) const {
  const Found names = Source(from.scope, from.node->input(1));
  const Bundle* bundle = variables_.bundle();
  if (!names.node || !names.node->attr().contains("value") || !bundle)
    return Unsupported("unknown source of its restored value");
  const auto& keys = names.node->attr().at("value").tensor().string_val();
  if (from.output >= keys.size()) return Unsupported("unknown source of its restored value");
  const std::string& key = keys[from.output];
  const BundleTensor* stored = bundle->Find(key);
  if (!stored) return NotFound("key '" + key + "' of the checkpoint is missing");
  const Type type{ToDType(stored->dtype), fusebox::Shape(stored->shape)};
  if (stored->dtype != tf::DT_STRING) {
    FUSEBOX_ASSIGN(Buffer bytes, bundle->Read(key));
    return Tensor{type, std::move(bytes)};
  }
  FUSEBOX_ASSIGN(const auto strings, bundle->ReadStrings(key));
  return Tensor{type, PackStrings(strings)};
}

Result<Tensor> LookupTables::Value(const Filler& filler, int input) const {
  if (input >= filler.node->input_size()) return Invalid("it has too few inputs");
  const Found from = Source(filler.scope, filler.node->input(input));
  if (from.node && from.node->op() == "RestoreV2" && from.node->input_size() > 1) return Restored(from);
  if (!from.node || from.node->op() != "Const" || !from.node->attr().contains("value"))
    return Unsupported("its contents are computed: input " + filler.node->input(input));
  return ToTensor(from.node->attr().at("value").tensor());
}

// Assets are named by the constant or placeholder of their path. Files outside of the folder are never
// opened.
Result<std::string> LookupTables::AssetPath(const Filler& filler) const {
  const Found from = Source(filler.scope, filler.node->input(1));
  if (from.node) {
    for (const tf::AssetFileDef& asset : model_.meta_graph->asset_file_def()) {
      const auto edge = ParseEdge(asset.tensor_info().name(), false);
      if (!edge || edge->node != from.node->name()) continue;
      const std::filesystem::path name(asset.filename());
      for (const auto& part : name)
        if (part == ".." || name.is_absolute())
          return Invalid("asset " + asset.filename() + " is outside of the model's folder");
      const std::filesystem::path file = std::filesystem::path(model_.dir) / "assets" / name;
      if (!LiesIn(model_.dir, file))
        return Invalid("asset " + asset.filename() +
                       " is a link out of the model's folder; copy the file there");
      return file.string();
    }
  }
  return Unsupported("its text file is not an asset of the model");
}

Result<LookupTable> LookupTables::FromFile(const Filler& filler, const tf::NodeDef& table) const {
  FUSEBOX_ASSIGN(const std::string path, AssetPath(filler));
  const auto number = [&](const char* attr, int64_t otherwise) {
    const auto it = filler.node->attr().find(attr);
    return it == filler.node->attr().end() ? otherwise : static_cast<int64_t>(it->second.i());
  };
  const auto delimiter = filler.node->attr().find("delimiter");
  TextTable text{.path = path,
                 .key = {TypeOf(table, "key_dtype"), number("key_index", 0)},
                 .value = {TypeOf(table, "value_dtype"), number("value_index", 0)},
                 .delimiter = delimiter == filler.node->attr().end() ? "\t" : delimiter->second.s(),
                 .most = number("vocab_size", -1),
                 .offset = number("offset", 0)};
  FUSEBOX_ASSIGN(auto columns, ReadTextTable(text));
  return LookupTable{std::move(columns.first), std::move(columns.second)};
}

Result<LookupTable> LookupTables::Of(const std::string& node) const {
  const auto it = fillers_.find(node);
  const tf::NodeDef* table = model_.FindNode(node);
  if (it == fillers_.end() || !table)
    return Unsupported("table " + node + ": no initializer runs before the model");
  const Filler& filler = it->second;
  if (filler.doubtful) return Unsupported("table " + node + ": several initializers of unknown order");
  if (filler.node->op().starts_with("InitializeTableFromTextFile"))
    return FromFile(filler, *table).At("table " + node);
  LookupTable made;
  FUSEBOX_ASSIGN(made.keys, Value(filler, 1).At("table " + node));
  FUSEBOX_ASSIGN(made.values, Value(filler, 2).At("table " + node));
  return made;
}

}  // namespace fusebox::saved_model
