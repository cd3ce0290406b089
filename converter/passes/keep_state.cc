// SPDX-License-Identifier: Apache-2.0
// Stateful layers: a variable that starts at zero, and that only one RNN op reads and updates, becomes the
// op's state, a variable tensor that the session keeps between calls and resets. All other variables keep
// their initial values.
#include <algorithm>
#include <map>

#include "converter/passes/pass.h"
#include "host/graph/rewriter.h"

namespace fusebox::converter {
namespace {

bool AllZero(const Buffer& data) {
  const auto bytes = data.As<uint8_t>();
  return !bytes.empty() && std::ranges::all_of(bytes, [](uint8_t b) { return b == 0; });
}

// Number of uses of each variable's handles, in all functions.
std::map<std::string, int> HandleUses(const Module& module) {
  std::map<std::string, int> out;
  for (const auto& f : module.functions) {
    const Uses uses(*f);
    for (const auto& node : f->nodes) {
      if (!node->is(Op::kVarHandle)) continue;
      const int readers = static_cast<int>(uses.readers(node->results[0]).size());
      out[node->attrs.str("shared_name", "")] += readers;
    }
  }
  return out;
}

class Keeper {
 public:
  Keeper(Context& context, Function& f, const std::map<std::string, int>& handle_uses)
      : context_(context), f_(f), r_(f), handle_uses_(handle_uses) {}

  void Run() {
    for (const auto& node : f_.nodes) {
      const auto states = StateOperands(node->op);
      if (states.empty() || node->results.size() < StateResultCount(*node)) continue;
      size_t result = ProperResultCount(*node);
      for (const int operand : states) {
        if (operand >= static_cast<int>(node->operands.size())) break;
        Keep(*node, static_cast<size_t>(operand), result++);
      }
    }
    for (const auto& node : f_.nodes)
      if (node->is(Op::kVarHandle) && r_.reads(node->results[0]) == 0) r_.Drop(*node);
    r_.Finish();
  }

 private:
  // Returns the variable of a handle, or null if it is unknown.
  const Variable* VariableOf(ValueId handle) const {
    const Node* maker = r_.producer(handle, Op::kVarHandle);
    if (!maker) return nullptr;
    return context_.module.FindVariable(maker->attrs.str("shared_name", ""));
  }

  void Keep(Node& node, size_t operand, size_t result) {
    const ValueId initial = node.operands[operand];
    const ValueId final_state = node.results[result];
    if (initial == kNoValue || final_state == kNoValue) return;
    Node* const read = r_.producer(initial, Op::kReadVariable);
    if (!read || !r_.read_once(initial)) return;
    const Variable* const variable = VariableOf(read->operands[0]);
    if (!variable || !AllZero(variable->initial) || !variable->type.shape.is_static()) return;
    Node* assign = nullptr;
    for (Node* reader : r_.readers(final_state))
      if (reader->is(Op::kAssignVariable) && reader->operands[1] == final_state &&
          VariableOf(reader->operands[0]) == variable)
        assign = reader;
    // No other uses: one read and one assignment.
    const auto found = handle_uses_.find(variable->name);
    if (!assign || found == handle_uses_.end() || found->second != 2) return;
    const ValueId state = f_.AddValue(variable->type, variable->name);
    f_.value(state).is_variable = true;
    r_.SetOperand(node, operand, state);
    f_.value(final_state).type = variable->type;
    r_.Drop(*read);
    r_.Drop(*assign);
  }

  Context& context_;
  Function& f_;
  Rewriter r_;
  const std::map<std::string, int>& handle_uses_;
};

}  // namespace

Status KeepState(Context& context) {
  const auto handle_uses = HandleUses(context.module);
  for (const Signature& s : context.module.signatures) {
    const auto same = [&](const Signature& other) { return other.function == s.function; };
    if (std::ranges::count_if(context.module.signatures, same) != 1) continue;
    Keeper(context, *context.module.Find(s.function), handle_uses).Run();
  }
  return {};
}

}  // namespace fusebox::converter
