// SPDX-License-Identifier: Apache-2.0
#include "converter/import/saved_model/dead_branches.h"

#include <algorithm>

namespace fusebox::saved_model {

bool IsSwitch(const tf::NodeDef& node) { return node.op() == "Switch" || node.op() == "RefSwitch"; }
bool IsMerge(const tf::NodeDef& node) { return node.op() == "Merge" || node.op() == "RefMerge"; }

std::optional<bool> ConstantCondition(const Function& f, ValueId condition) {
  constexpr int kMostSteps = 16;
  bool negated = false;
  for (int step = 0; step < kMostSteps; ++step) {
    const Value& value = f.value(condition);
    if (value.is_const()) {
      if (value.type.dtype != DType::kBool || value.data.size() != 1) return std::nullopt;
      return (value.data.As<uint8_t>()[0] != 0) != negated;
    }
    const auto made = std::find_if(f.nodes.rbegin(), f.nodes.rend(), [&](const auto& node) {
      return node->results.size() == 1 && node->results[0] == condition;
    });
    if (made == f.nodes.rend() || !(*made)->is(Op::kOpaque) || (*made)->operands.size() != 1)
      return std::nullopt;
    const std::string& op = (*made)->name;
    if (op != "Identity" && op != "PlaceholderWithDefault" && op != "LogicalNot") return std::nullopt;
    negated ^= op == "LogicalNot";
    condition = (*made)->operands[0];
  }
  return std::nullopt;
}

bool DeadBranches::IsDead(const std::string& input) const {
  const auto edge = ParseEdge(input, in_function_);
  if (!edge) return false;
  if (dead_.contains(edge->node)) return true;
  const auto cut = cut_.find(edge->node);
  if (cut == cut_.end() || edge->control) return false;
  return cut->second == (edge->output == "output_true" ? 1 : edge->index);
}

bool DeadBranches::Reach(const tf::NodeDef& node) {
  const auto dead = [&](const std::string& input) { return IsDead(input); };
  const auto& inputs = node.input();
  const bool is = IsMerge(node) ? !inputs.empty() && std::ranges::all_of(inputs, dead)
                                : std::ranges::any_of(inputs, dead);
  if (is) dead_.insert(node.name());
  return is;
}

}  // namespace fusebox::saved_model
