// SPDX-License-Identifier: Apache-2.0
#include "host/plan/variables.h"

#include <algorithm>

namespace fusebox::plan {
namespace {

bool UsesVariable(const Node& node) { return node.is(Op::kReadVariable) || node.is(Op::kAssignVariable); }

bool Contains(const std::vector<ValueId>& values, ValueId id) {
  return std::ranges::find(values, id) != values.end();
}

}  // namespace

bool IsInPlace(const Code& code, size_t node) {
  const Unit& unit = code.units[node];
  return unit.kernel && (unit.kernel.kernel->flags & FBX_KERNEL_INPLACE) != 0 && code.states[node].empty();
}

VariableUses::VariableUses(const Code& code) : code_(code) {
  const auto& nodes = code.function->nodes;
  if (std::ranges::none_of(nodes, [](const auto& node) { return node->is(Op::kReadVariable); })) return;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    if (node.is(Op::kVarHandle))
      handles_[node.results[0]] = {node.attrs.str("container", ""), node.attrs.str("shared_name", "")};
    if (node.is(Op::kAssignVariable)) assigns_.emplace(node.operands[1], i);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->is(Op::kReadVariable)) Follow(i);
  }
}

std::pair<size_t, ValueId> VariableUses::UpdatedBy(size_t node) const {
  const auto found = updates_.find(node);
  return found == updates_.end() ? std::pair<size_t, ValueId>{0, kNoValue} : found->second;
}

void VariableUses::Follow(size_t read) {
  const Name* const variable = NameOf(*code_.function->nodes[read]);
  if (variable == nullptr) return;
  const std::vector<ValueId> values = ValuesInPlace(code_.function->nodes[read]->results[0], *variable);
  int last = 0;
  for (const ValueId id : values) last = std::max(last, code_.use(id).last_use);
  if (last == ValueUse::kAlways) return;  // the caller gets a copy
  for (size_t i = read + 1; i <= static_cast<size_t>(last); ++i) {
    if (IsTouched(i, *variable, values)) return;
  }
  shown_.insert(read);
  for (size_t i = 1; i < values.size(); ++i)
    updates_[static_cast<size_t>(code_.use(values[i]).defined)] = {read, values[i - 1]};
}

// The value itself, and those that may be computed from it in place, up to the last that is assigned.
std::vector<ValueId> VariableUses::ValuesInPlace(ValueId from, const Name& variable) const {
  std::vector<ValueId> values = {from};
  size_t kept = 1;
  for (ValueId next = NextInPlace(from); next != kNoValue; next = NextInPlace(next)) {
    values.push_back(next);
    if (IsAssigned(next, variable)) kept = values.size();
  }
  values.resize(kept);
  return values;
}

// The result of the last node that reads the value, if it may be computed in place.
ValueId VariableUses::NextInPlace(ValueId id) const {
  const int last = code_.use(id).last_use;
  if (last < 0 || last == ValueUse::kAlways || !IsInPlace(code_, static_cast<size_t>(last))) return kNoValue;
  return code_.function->nodes[static_cast<size_t>(last)]->results[0];
}

bool VariableUses::IsAssigned(ValueId id, const Name& variable) const {
  const auto [begin, end] = assigns_.equal_range(id);
  return std::any_of(begin, end, [&](const auto& assign) {
    const Name* const name = NameOf(*code_.function->nodes[assign.second]);
    return name != nullptr && *name == variable;
  });
}

// Returns whether the node reads or assigns the variable, other than by assigning one of these values to it.
bool VariableUses::IsTouched(size_t index, const Name& variable, const std::vector<ValueId>& values) {
  const Node& node = *code_.function->nodes[index];
  if (UsesVariable(node)) {
    const Name* const name = NameOf(node);
    if (name != nullptr && *name != variable) return false;
    return name == nullptr || node.is(Op::kReadVariable) || !Contains(values, node.operands[1]);
  }
  const auto& callees = code_.units[index].callees;
  return std::ranges::any_of(callees, [&](const Code* callee) { return HasVariables(*callee); });
}

bool VariableUses::HasVariables(const Code& code) {
  if (without_.contains(&code)) return false;
  for (size_t i = 0; i < code.units.size(); ++i) {
    if (UsesVariable(*code.function->nodes[i])) return true;
    for (const Code* callee : code.units[i].callees)
      if (HasVariables(*callee)) return true;
  }
  without_.insert(&code);
  return false;
}

const VariableUses::Name* VariableUses::NameOf(const Node& node) const {
  const auto found = handles_.find(node.operands[0]);
  return found == handles_.end() ? nullptr : &found->second;
}

}  // namespace fusebox::plan
