// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/consequences.h"

#include <algorithm>

#include "converter/passes/lists.h"

namespace fusebox::converter {
namespace {

class Flow {
 public:
  Flow(const Module& module, const Problems& problems, const std::function<bool(const Node&)>& hopeless)
      : module_(module), problems_(problems), hopeless_(hopeless) {}

  std::set<const Node*> Run(const Function& entry) {
    do {
      grown_ = false;
      Visit(entry);
    } while (grown_);
    causes_ = kNoLists;
    Visit(entry);
    // The type of a list follows from its items: if an item's type is unknown, so is the list's.
    if (std::ranges::any_of(follows_, [](const Node* node) { return fusebox::Has(node->op, kList); })) {
      for (const auto& [node, why] : problems_)
        if (why == kUnknownElement) follows_.insert(node);
    }
    causes_ = kAll;
    Visit(entry);
    return std::move(follows_);
  }

 private:
  // Problems that count as causes in each phase.
  enum Causes { kHopeless, kNoLists, kAll };
  bool IsCause(const Node& node) const {
    if (!problems_.contains(&node)) return false;
    return causes_ == kAll || hopeless_(node) || (causes_ == kNoLists && !fusebox::Has(node.op, kList));
  }

  bool Has(const Function& f, ValueId v) const { return v != kNoValue && unknown_.contains({&f, v}); }

  void Mark(const Function& f, ValueId v) {
    if (v == kNoValue || f.value(v).is_const()) return;
    const Type& type = f.value(v).type;
    const bool known = type.dtype != DType::kNone && type.dtype != DType::kVariant && type.shape.is_static();
    if (!known && unknown_.insert({&f, v}).second) grown_ = true;
  }

  // A visit depends on the phase and on what is unknown by then.
  void Visit(const Function& f) {
    const std::pair state(causes_, unknown_.size());
    const auto [seen, fresh] = seen_.emplace(&f, state);
    if (!fresh && std::exchange(seen->second, state) == state) return;
    for (const auto& node : f.nodes) {
      const bool reads = std::ranges::any_of(node->operands, [&](ValueId v) { return Has(f, v); });
      if (reads && problems_.contains(node.get()) && !hopeless_(*node)) follows_.insert(node.get());
      if (reads || IsCause(*node))
        for (const ValueId v : node->results) Mark(f, v);
      for (const std::string& name : References(*node)) {
        if (const Function* callee = module_.Find(name)) Call(f, *node, *callee);
      }
    }
  }

  // Arguments are the last operands; an IF has its condition before them.
  void Call(const Function& f, const Node& node, const Function& callee) {
    const auto pass = [&](const Function& from, const auto& values, const Function& to, const auto& places) {
      const size_t count = std::min<size_t>(values.size(), places.size());
      for (size_t i = 1; i <= count; ++i)
        if (Has(from, values[values.size() - i])) Mark(to, places[places.size() - i]);
    };
    pass(f, node.operands, callee, callee.inputs);
    Visit(callee);
    if (callee.outputs.size() != node.results.size()) return;  // a loop's condition
    pass(callee, callee.outputs, f, node.results);
    if (causes_ == kHopeless && node.is(Op::kWhile)) {
      for (const std::string& again : References(node))
        if (const Function* part = module_.Find(again)) pass(callee, callee.outputs, *part, part->inputs);
    }
  }

  const Module& module_;
  const Problems& problems_;
  const std::function<bool(const Node&)>& hopeless_;
  std::set<std::pair<const Function*, ValueId>> unknown_;
  std::set<const Node*> follows_;
  std::map<const Function*, std::pair<Causes, size_t>> seen_;
  Causes causes_ = kHopeless;
  bool grown_ = false;  // during this walk
};

}  // namespace

std::set<const Node*> Consequences(const Module& module, const Function& entry, const Problems& problems,
                                   const std::function<bool(const Node&)>& hopeless) {
  return Flow(module, problems, hopeless).Run(entry);
}

}  // namespace fusebox::converter
