// SPDX-License-Identifier: Apache-2.0
// Replaces variable operands of composites by their values. Early TensorFlow 2 Keras passes variables to a
// stateful layer, whose function reads them; rules expect values and a visible state update.
#include <algorithm>

#include "converter/passes/pass.h"
#include "host/graph/calls.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

bool IsHandleOf(const Node* node, const std::string& variable) {
  return node && node->is(Op::kVarHandle) && node->attrs.str("shared_name", "") == variable;
}

bool Names(const Function& f, const std::string& variable) {
  return std::ranges::any_of(f.nodes, [&](const auto& node) { return IsHandleOf(node.get(), variable); });
}

// True if the body only reads the variable.
bool OnlyReads(const Module& module, const Function& body, const std::string& variable) {
  for (const Function* called : Reachable(module, References(body)))
    if (Names(*called, variable)) return false;
  const Uses uses(body);
  for (const auto& node : body.nodes) {
    if (!IsHandleOf(node.get(), variable)) continue;
    for (const Uses::Reader& reader : uses.readers(node->results[0]))
      if (!reader.node || !reader.node->is(Op::kReadVariable)) return false;
  }
  return true;
}

void ReadInput(Function& body, ValueId input, const Variable& variable) {
  body.value(input).type = variable.type;
  Rewriter r(body);
  for (const auto& node : body.nodes) {
    if (!node->is(Op::kReadVariable) || !IsHandleOf(r.producer(node->operands[0]), variable.name)) continue;
    r.ReplaceUses(node->results[0], input);
    r.Drop(*node);
  }
}

// The variable of operand k, if its value can replace it. Bodies name their variables themselves, so the
// input is unused.
const Variable* VariableAt(Module& module, const Rewriter& r, const Node& node, const Function& body,
                           size_t k) {
  if (k >= body.inputs.size() || node.operands[k] == kNoValue) return nullptr;
  const Node* handle = r.producer(node.operands[k], Op::kVarHandle);
  if (!handle) return nullptr;
  const Variable* variable = module.FindVariable(handle->attrs.str("shared_name", ""));
  if (!variable || !variable->type.shape.is_static() || !Uses(body).readers(body.inputs[k]).empty())
    return nullptr;
  // A read-only variable may also be read by loops of the body: it becomes a constant there.
  const bool constant = variable->mutability == Variable::Mutability::kReadOnly;
  return constant || OnlyReads(module, body, variable->name) ? variable : nullptr;
}

}  // namespace

Status HoistReads(Context& context) {
  Module& module = context.module;
  for (const auto& f : module.functions) {
    Rewriter r(*f);
    FUSEBOX_TRY(r.Walk([&](Node& node) -> Status {
      if (!node.is(Op::kStablehloComposite) || node.body.empty()) return {};
      Function& body = *module.Find(node.body);
      r.SetLocation({});
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const Variable* variable = VariableAt(module, r, node, body, k);
        if (!variable) continue;
        ReadInput(body, body.inputs[k], *variable);
        r.SetOperand(node, k, r.Typed(Op::kReadVariable, {node.operands[k]}, variable->type));
      }
      return {};
    }));
  }
  return {};
}

}  // namespace fusebox::converter
