// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "host/fusion/fusion.h"
#include "host/fusion/lower.h"
#include "host/graph/calls.h"

namespace fusebox {
namespace {

bool SameQuant(const Value& a, const Value& b) {
  if (a.quant == nullptr || b.quant == nullptr) return a.quant == b.quant;
  return *a.quant == *b.quant;
}

// A node that updates an input in place would update the caller's value.
bool UpdatesInput(const Function& body) {
  const auto updates = [&](const auto& node) {
    return std::ranges::any_of(StateOperands(node->op), [&](int i) {
      const auto operand = static_cast<size_t>(i);
      return operand < node->operands.size() &&
             std::ranges::find(body.inputs, node->operands[operand]) != body.inputs.end();
    });
  };
  return std::ranges::any_of(body.nodes, updates);
}

bool HasState(const Function& body) {
  for (ValueId v = 0; v < body.value_count(); ++v)
    if (body.value(v).is_variable) return true;
  return std::ranges::any_of(body.nodes, [](const auto& node) {
    const Effects effects = Info(node->op).effects;
    return effects == Effects::kStateful || effects == Effects::kRandom;
  });
}

class BodyInliner {
 public:
  explicit BodyInliner(Module& module) : module_(module), uses_(CountCalls(module)) {
    for (const auto& f : module.functions) functions_.emplace(f->name, f.get());
  }

  // Innermost bodies first: what a body holds when it is inlined is final.
  void Visit(const std::string& name) {
    const auto found = functions_.find(name);
    if (found == functions_.end() || !visited_.insert(name).second) return;
    Function& f = *found->second;
    for (const std::string& callee : References(f)) Visit(callee);
    for (size_t i = 0; i < f.nodes.size();) {
      const Function* const body = BodyOf(f, *f.nodes[i]);
      if (body == nullptr) {
        ++i;
        continue;
      }
      const size_t count = body->nodes.size();
      InlineAt(f, i, *body);
      i += count;
    }
  }

 private:
  // Returns null if the node stays.
  const Function* BodyOf(const Function& caller, const Node& node) {
    if (!node.is(Op::kStablehloComposite)) return nullptr;
    const auto found = functions_.find(node.body);
    if (found == functions_.end()) return nullptr;
    const Function& body = *found->second;
    if (body.placeholder || IsPlaceholder(module_, body) || UpdatesInput(body)) return nullptr;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId v = node.operands[i];
      if (v == kNoValue || caller.value(v).is_variable) return nullptr;
      if (!SameQuant(caller.value(v), body.value(body.inputs[i]))) return nullptr;
    }
    if (std::ranges::find(node.results, kNoValue) != node.results.end()) return nullptr;
    return uses_[node.body] == 1 || MayCopy(body) ? &body : nullptr;
  }

  bool MayCopy(const Function& body) {
    constexpr size_t kMost = size_t{1}
                             << 16;  // nested bodies that each use the next twice grow exponentially
    if (HasState(body) || copied_ + body.nodes.size() > kMost) return false;
    copied_ += body.nodes.size();
    return true;
  }

  Module& module_;
  std::map<std::string, Function*> functions_;
  CallCounts uses_;
  std::set<std::string> visited_;
  size_t copied_ = 0;
};

}  // namespace

void InlineBodies(Module& module) {
  BodyInliner inliner(module);
  for (size_t i = 0; i < module.functions.size(); ++i) inliner.Visit(module.functions[i]->name);
}

}  // namespace fusebox
