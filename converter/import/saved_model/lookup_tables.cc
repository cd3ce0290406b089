// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/lookup_tables.h"

#include <filesystem>

#include "converter/import/saved_model/function_import.h"
#include "converter/import/saved_model/import.h"
#include "converter/import/saved_model/text_table.h"

namespace fusebox::saved_model {
namespace {

bool IsFiller(std::string_view op) {
  return op == "LookupTableImportV2" || op == "LookupTableImport" || op == "InitializeTableV2" ||
         op == "InitializeTable" || op == "InitializeTableFromTextFileV2" ||
         op == "InitializeTableFromTextFile";
}

const tf::FunctionDef* Callee(const SavedModel& model, const tf::NodeDef& node) {
  if (node.op() != "StatefulPartitionedCall" && node.op() != "PartitionedCall")
    return model.FindFunction(node.op());
  const auto f = node.attr().find("f");
  return f == node.attr().end() ? nullptr : model.FindFunction(f->second.func().name());
}

DType TypeOf(const tf::NodeDef& node, const std::string& attr) {
  const auto it = node.attr().find(attr);
  return it == node.attr().end() ? DType::kNone : ToDType(it->second.type());
}

}  // namespace

bool IsLookupTable(std::string_view op) {
  return op == "HashTableV2" || op == "HashTable" || op == "MutableHashTableV2" || op == "MutableHashTable";
}

LookupTables::LookupTables(const SavedModel& model, const Variables& variables)
    : model_(model), variables_(variables) {
  bool any = false;
  for (const tf::NodeDef& node : model.graph().node()) any |= IsLookupTable(node.op());
  if (!any) return;
  scopes_.push_back(std::make_unique<Scope>());
  Visit(*scopes_.back(), 0);
}

// A table is filled once; where two nodes could, constants are better than what a checkpoint once held.
void LookupTables::Visit(const Scope& scope, int depth) {
  constexpr int kDeepest = 3;
  constexpr size_t kMostNodes = size_t{1} << 20;
  const auto& nodes = scope.function ? scope.function->node_def() : model_.graph().node();
  auto& by_name = nodes_[&scope];
  for (const tf::NodeDef& node : nodes) by_name.emplace(node.name(), &node);
  visited_ += static_cast<size_t>(nodes.size());
  if (visited_ > kMostNodes) return;
  for (const tf::NodeDef& node : nodes) {
    if (IsFiller(node.op()) && node.input_size() >= 2) {
      const Found table = Source(&scope, node.input(0));
      if (!table.node || !IsLookupTable(table.node->op())) continue;
      const Filler filler{&node, &scope};
      const Found values = Source(&scope, node.input(1));
      if (values.node && values.node->op() == "RestoreV2") fillers_.emplace(table.node->name(), filler);
      else fillers_[table.node->name()] = filler;
    } else if (const tf::FunctionDef* callee = depth < kDeepest ? Callee(model_, node) : nullptr) {
      scopes_.push_back(std::make_unique<Scope>(Scope{&scope, &node, callee}));
      Visit(*scopes_.back(), depth + 1);
    }
  }
}

// The node that an input is the value of: past identities, out of functions, and through a variable that is assigned once.
LookupTables::Found LookupTables::Source(const Scope* scope, std::string_view input) const {
  constexpr int kMostSteps = 32;
  std::string text(input);
  for (int step = 0; step < kMostSteps; ++step) {
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
    const auto& nodes = nodes_.at(scope);
    const auto it = nodes.find(edge->node);
    if (it == nodes.end()) return {};
    const tf::NodeDef& node = *it->second;
    if (node.op() == "Identity" && node.input_size() > 0) {
      text = node.input(0);
    } else if (node.op() == "ReadVariableOp" && node.input_size() > 0) {
      const Found handle = Source(scope, node.input(0));
      if (!handle.node) return {};
      const tf::NodeDef* assigned = nullptr;
      for (const auto& [name, other] : nodes_.at(handle.scope))
        if (other->op() == "AssignVariableOp" && other->input_size() > 1 &&
            other->input(0) == handle.node->name())
          assigned = other;
      if (!assigned) return handle;
      scope = handle.scope;
      text = assigned->input(1);
    } else {
      return {&node, scope, edge->index};
    }
  }
  return {};
}

Result<Tensor> LookupTables::Restored(const Found& from) const {
  const Found names = Source(from.scope, from.node->input(1));
  const Bundle* bundle = variables_.bundle();
  if (!names.node || !names.node->attr().contains("value") || !bundle)
    return Unsupported("nothing says what it is restored from");
  const auto& keys = names.node->attr().at("value").tensor().string_val();
  if (from.output >= keys.size()) return Unsupported("nothing says what it is restored from");
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
    return Unsupported("what it is filled with is computed: input " + filler.node->input(input));
  return ToTensor(from.node->attr().at("value").tensor());
}

// Assets are named by the constant or the placeholder that stands for their path. Nothing outside of the folder is opened.
Result<std::string> LookupTables::AssetPath(const Filler& filler) const {
  const Found from = Source(filler.scope, filler.node->input(1));
  if (from.node) {
    for (const tf::AssetFileDef& asset : model_.meta_graph->asset_file_def()) {
      const auto edge = ParseEdge(asset.tensor_info().name(), false);
      if (!edge || edge->node != from.node->name()) continue;
      const std::filesystem::path name(asset.filename());
      for (const auto& part : name)
        if (part == ".." || name.is_absolute())
          return Invalid("asset " + asset.filename() + " lies outside of the model's folder");
      return (std::filesystem::path(model_.dir) / "assets" / name).string();
    }
  }
  return Unsupported("its text file is none of the model's assets");
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
    return Unsupported("table " + node + ": nothing fills it before the model runs");
  const Filler& filler = it->second;
  if (filler.node->op().starts_with("InitializeTableFromTextFile"))
    return FromFile(filler, *table).At("table " + node);
  LookupTable made;
  FUSEBOX_ASSIGN(made.keys, Value(filler, 1).At("table " + node));
  FUSEBOX_ASSIGN(made.values, Value(filler, 2).At("table " + node));
  return made;
}

}  // namespace fusebox::saved_model
