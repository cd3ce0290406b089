// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "host/graph/calls.h"

namespace fusebox {
namespace {

void CollectReferences(const Attrs& attrs, std::vector<std::string>& names) {
  for (const auto& [key, value] : attrs) {
    if (const auto* function = std::get_if<FunctionRef>(&value)) names.push_back(function->name);
    const auto* map = std::get_if<std::shared_ptr<const Attrs>>(&value);
    if (map != nullptr && *map != nullptr) CollectReferences(**map, names);
  }
}

}  // namespace

Function* Module::Find(std::string_view name) const {
  for (const auto& function : functions) {
    if (function->name == name) return function.get();
  }
  return nullptr;
}

Function& Module::Add(std::string name) {
  name = UniqueName(name);
  return *functions.emplace_back(std::make_unique<Function>(std::move(name)));
}

std::string Module::UniqueName(std::string_view wish) const {
  const std::string base(wish.empty() ? "function" : wish);
  std::string name = base;
  for (int i = 1; Find(name) != nullptr; ++i) name = base + "_" + std::to_string(i);
  return name;
}

Variable* Module::FindVariable(std::string_view name) {
  const auto found = std::ranges::find(variables, name, &Variable::name);
  return found == variables.end() ? nullptr : &*found;
}

std::vector<std::string> References(const Node& node) {
  std::vector<std::string> names;
  CollectReferences(node.attrs, names);
  if (!node.body.empty()) names.push_back(node.body);
  return names;
}

std::vector<std::string> References(const Function& function) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  for (const auto& node : function.nodes) {
    if (node == nullptr) continue;
    for (std::string& name : References(*node)) names.push_back(std::move(name));
  }
  std::vector<std::string> unique;
  for (const std::string& name : names) {
    if (seen.insert(name).second) unique.push_back(name);
  }
  return unique;
}

void RemoveUnreachable(Module& module) {
  std::vector<std::string> entries;
  if (!module.functions.empty()) entries.push_back(module.functions.front()->name);
  for (const Signature& signature : module.signatures) entries.push_back(signature.function);
  const std::vector<Function*> list = Reachable(module, std::move(entries));
  const std::set<const Function*> reached(list.begin(), list.end());
  std::erase_if(module.functions, [&](const auto& function) { return !reached.contains(function.get()); });
}

}  // namespace fusebox
