// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "host/graph/graph.h"

namespace fusebox {
namespace {

using Renames = std::map<std::string, std::string, std::less<>>;

void RenameReferences(Attrs& attrs, const Renames& names) {
  for (auto& [key, value] : attrs) {
    if (auto* function = std::get_if<FunctionRef>(&value)) {
      const auto found = names.find(function->name);
      if (found != names.end()) function->name = found->second;
    }
    auto* map = std::get_if<std::shared_ptr<const Attrs>>(&value);
    if (map != nullptr && *map != nullptr) {
      auto copy = std::make_shared<Attrs>(**map);
      RenameReferences(*copy, names);
      *map = std::move(copy);
    }
  }
}

void RenameReferences(Function& function, const Renames& names) {
  for (const auto& node : function.nodes) {
    if (node == nullptr) continue;
    RenameReferences(node->attrs, names);
    const auto found = names.find(node->body);
    if (found != names.end()) node->body = found->second;
  }
}

}  // namespace

std::unique_ptr<Function> Clone(const Function& function, std::string name) {
  auto copy = std::make_unique<Function>(std::move(name));
  copy->inputs = function.inputs;
  copy->outputs = function.outputs;
  copy->input_names = function.input_names;
  copy->output_names = function.output_names;
  copy->attrs = function.attrs;
  copy->placeholder = function.placeholder;
  for (ValueId id = 0; id < function.value_count(); ++id) {
    copy->AddValue({});
    copy->value(id) = function.value(id);
  }
  for (const auto& node : function.nodes) {
    if (node != nullptr) copy->nodes.push_back(std::make_unique<Node>(*node));
  }
  return copy;
}

std::unique_ptr<Module> Clone(const Module& module) {
  auto copy = std::make_unique<Module>();
  copy->variables = module.variables;
  copy->signatures = module.signatures;
  copy->metadata = module.metadata;
  copy->description = module.description;
  copy->source = module.source;
  copy->appended = module.appended;
  for (const auto& function : module.functions) copy->functions.push_back(Clone(*function, function->name));
  return copy;
}

std::string CopyInto(const Module& from, const Function& function, Module& to) {
  Renames names;
  std::vector<const Function*> open = {&function};
  std::vector<Function*> copies;
  while (!open.empty()) {
    const Function* original = open.back();
    open.pop_back();
    if (names.contains(original->name)) continue;
    Function& place = to.Add(original->name);
    names.emplace(original->name, place.name);
    auto copy = Clone(*original, place.name);
    place = std::move(*copy);
    copies.push_back(&place);
    for (const std::string& name : References(*original)) {
      if (const Function* next = from.Find(name)) open.push_back(next);
    }
  }
  for (Function* copy : copies) RenameReferences(*copy, names);
  return names.find(function.name)->second;
}

}  // namespace fusebox
