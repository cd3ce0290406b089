// SPDX-License-Identifier: Apache-2.0
#include "host/run/interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "host/graph/graph.h"

namespace fusebox::run {
namespace {

// Only operands that are read: the body of a fused op has an input for each operand of the op.
bool HasAbsentOperand(const Node& node, const plan::Unit& unit) {
  std::optional<Uses> uses;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.operands[i] != kNoValue) continue;
    if (!unit.runs_body) return true;
    const Function& body = *unit.callees[0]->function;
    if (!uses) uses.emplace(body);
    if (!uses->readers(body.inputs[i]).empty()) return true;
  }
  return false;
}

}  // namespace

Status CheckInterface(const Node& node, const plan::Unit& unit) {
  if (node.is(Op::kCallOnce)) return {};
  const bool is_while = node.is(Op::kWhile) && !unit.runs_body;
  const size_t skipped = node.is(Op::kIf) && !unit.runs_body ? 1 : 0;
  for (size_t i = 0; i < unit.callees.size(); ++i) {
    const Function& callee = *unit.callees[i]->function;
    const bool condition = is_while && i == 0;
    const size_t results = condition ? 1 : node.results.size();
    if (callee.inputs.size() + skipped != node.operands.size() || callee.outputs.size() != results) {
      return Invalid(fmt::format(
          "passes {} values to function {}, which has {} inputs, and expects {} of its {} outputs",
          node.operands.size() - skipped, callee.name, callee.inputs.size(), results, callee.outputs.size()));
    }
  }
  if (is_while && node.operands.size() != node.results.size())
    return Invalid("a loop must have as many results as operands");
  if (!unit.callees.empty() &&
      (HasAbsentOperand(node, unit) ||
       std::find(node.results.begin(), node.results.end(), kNoValue) != node.results.end()))
    return Invalid("a value of a call is absent");
  return {};
}

}  // namespace fusebox::run
