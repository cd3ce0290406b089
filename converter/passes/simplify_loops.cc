// SPDX-License-Identifier: Apache-2.0
// Removes loop variables that no live result needs, and replaces constant ones by the constant.
#include <algorithm>
#include <unordered_set>

#include "converter/import/tables/composites.h"
#include "converter/passes/pass.h"
#include "host/graph/calls.h"

namespace fusebox::converter {
namespace {

class Loop {
 public:
  Loop(Module& module, Function& f, Node& node)
      : f_(f),
        node_(node),
        cond_(*module.Find(node.attrs.function("cond_subgraph_index")->name)),
        body_(*module.Find(node.attrs.function("body_subgraph_index")->name)) {}

  void Run() {
    for (size_t i = node_.operands.size(); i-- > 0;) BindConstant(i);
    const std::vector<bool> live = Live();
    for (size_t i = node_.operands.size(); i-- > 0;)
      if (!live[i] && node_.operands.size() > 1) Drop(i);  // a loop needs at least one variable
    RemoveDead(body_);
    RemoveDead(cond_);
  }

 private:
  void BindConstant(size_t i) {
    if (body_.inputs[i] != body_.outputs[i] || !f_.value(node_.operands[i]).is_const()) return;
    const Value& constant = f_.value(node_.operands[i]);
    f_.ReplaceUses(node_.results[i], node_.operands[i]);
    for (Function* inside : {&cond_, &body_}) {
      const ValueId input = inside->inputs[i];
      const ValueId bound = inside->AddConst(constant.type, constant.data, constant.name);
      inside->value(bound).quant = constant.quant;
      for (auto& node : inside->nodes)
        for (ValueId& v : node->operands)
          if (v == input) v = bound;
    }
  }

  // Inputs that the outputs `wanted` of a function depend on.
  static std::vector<bool> Needs(const Function& f, std::vector<ValueId> wanted) {
    const Uses uses(f);
    std::unordered_set<ValueId> seen;
    for (const auto& node : f.nodes)  // nodes with side effects are always needed
      if (!IsPure(*node)) wanted.insert(wanted.end(), node->operands.begin(), node->operands.end());
    while (!wanted.empty()) {
      const ValueId v = wanted.back();
      wanted.pop_back();
      if (v == kNoValue || !seen.insert(v).second) continue;
      if (const Node* producer = uses.producer(v))
        wanted.insert(wanted.end(), producer->operands.begin(), producer->operands.end());
    }
    std::vector<bool> out;
    for (ValueId v : f.inputs) out.push_back(seen.contains(v));
    return out;
  }

  std::vector<bool> Live() const {
    const Uses uses(f_);
    std::vector<bool> live = Needs(cond_, cond_.outputs);
    for (size_t i = 0; i < live.size(); ++i)
      if (!uses.readers(node_.results[i]).empty()) live[i] = true;
    for (bool grew = true; grew;) {
      grew = false;
      std::vector<ValueId> wanted;
      for (size_t i = 0; i < live.size(); ++i)
        if (live[i]) wanted.push_back(body_.outputs[i]);
      const std::vector<bool> needed = Needs(body_, std::move(wanted));
      for (size_t i = 0; i < live.size(); ++i) {
        if (needed[i] && !live[i]) live[i] = grew = true;
      }
    }
    return live;
  }

  void Drop(size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    node_.operands.erase(node_.operands.begin() + at);
    node_.results.erase(node_.results.begin() + at);
    body_.outputs.erase(body_.outputs.begin() + at);
    for (Function* inside : {&cond_, &body_}) {
      inside->inputs.erase(inside->inputs.begin() + at);
      inside->input_names.clear();
      inside->output_names.clear();
    }
  }

  Function& f_;
  Node& node_;
  Function& cond_;
  Function& body_;
};

}  // namespace

Status SimplifyLoops(Context& context) {
  const CallCounts calls = CountCalls(context.module);
  const auto owned = [&](const std::string& name) { return calls.at(name) == 1; };
  for (const auto& f : context.module.functions)
    for (auto& node : f->nodes)
      if (node->is(Op::kWhile) && std::ranges::all_of(References(*node), owned))
        Loop(context.module, *f, *node).Run();
  return {};
}

}  // namespace fusebox::converter
