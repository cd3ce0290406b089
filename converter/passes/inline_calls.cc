// SPDX-License-Identifier: Apache-2.0
// Afterwards there are no plain calls, and each loop, branch and composite has its own functions, which name
// the variables they use. So later passes may transform one function at a time. Only if that takes many
// copies, functions that do not depend on their callers stay shared.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "converter/import/tables/composites.h"
#include "converter/passes/pass.h"
#include "host/graph/calls.h"

namespace fusebox::converter {
namespace {

// Replaces nodes by the functions that `callee` returns for them (null: the node stays), innermost first.
class Inliner {
 public:
  using CalleeOf = std::function<const Function*(const Node&)>;
  Inliner(Module& module, CalleeOf callee) : module_(module), callee_(std::move(callee)) {
    size_t nodes = 0;
    for (const auto& f : module.functions) nodes += f->nodes.size();
    most_ = std::max(kMost, kMostTimes * nodes);
  }

  Status Run(Function& f) {
    if (!done_.insert(f.name).second) return {};
    for (size_t i = 0; i < f.nodes.size();) {
      for (const std::string& name : References(*f.nodes[i])) FUSEBOX_TRY(Run(*module_.Find(name)));
      const Function* const callee = callee_(*f.nodes[i]);
      if (!callee) {
        ++i;
        continue;
      }
      FUSEBOX_TRY(Spend(*callee));
      if (f.nodes[i]->is(Op::kCall)) DropCallName(*f.nodes[i]);
      const size_t count = callee->nodes.size();
      InlineAt(f, i, *callee);
      i += count;
    }
    return {};
  }

 private:
  static constexpr size_t kMost = size_t{1} << 16;
  static constexpr size_t kMostTimes = 64;  // the model's nodes

  // "StatefulPartitionedCall_1" carries no information; names inside the callee do.
  static void DropCallName(Node& call) {
    const size_t slash = call.location.name.rfind('/');
    const size_t last = slash == std::string::npos ? 0 : slash + 1;
    const std::string_view name = std::string_view(call.location.name).substr(last);
    if (!name.starts_with("StatefulPartitionedCall") && !name.starts_with("PartitionedCall")) return;
    call.location.name.resize(slash == std::string::npos ? 0 : slash);
  }

  // Limits crafted files whose nested calls grow exponentially.
  Status Spend(const Function& callee) {
    copies_ += callee.nodes.size() + 1;
    if (copies_ > most_)
      return Unsupported("function " + callee.name + ": its nested calls expand to more than " +
                         std::to_string(most_) + " nodes");
    return {};
  }

  Module& module_;
  const CalleeOf callee_;
  std::set<std::string> done_;
  size_t most_ = 0;
  size_t copies_ = 0;
};

class Owner {
 public:
  Owner(Context& context, std::vector<std::string> entries)
      : module_(context.module), entries_(std::move(entries)), owned_(entries_.begin(), entries_.end()) {
    if (context.options.batch || !context.options.shapes.empty()) fixed_ = owned_;
  }

  Status Run() {
    shares_ = Needed() > module_.functions.size() + kFewCopies;
    if (shares_ && Needed() > kMostFunctions)
      return Unsupported(
          "more than " + std::to_string(kMostFunctions) +
          " copies of functions shared by branches, loops and composites; share fewer functions");
    for (const std::string& name : entries_) Own(*module_.Find(name));
    // After all copies, because these are made from the unmodified functions.
    for (const std::string& name : entries_) NameAllVariables(*module_.Find(name));
    return {};
  }

 private:
  static constexpr size_t kFewCopies = 256;
  static constexpr size_t kMostFunctions = size_t{1} << 13;  // function lookup is linear

  void Own(Function& f) {
    if (!seen_.insert(&f).second) return;
    for (const auto& node : f.nodes) {
      if (node->is(Op::kCallOnce)) continue;
      EachOwned(*node, [&](std::string& name) { Own(name); });
      for (const std::string& name : References(*node)) Own(*module_.Find(name));
    }
  }

  void NameAllVariables(Function& f) {
    if (!named_.insert(&f).second) return;
    for (const auto& node : f.nodes) {
      const std::vector<std::string> names = References(*node);
      if (node->is(Op::kCallOnce) || names.empty()) continue;
      NameVariables(f, *node);
      for (const std::string& name : names) NameAllVariables(*module_.Find(name));
    }
  }

  // Calls visit(name) for each function that the node should own. All callers share a CALL_ONCE initializer.
  template <class Visit>
  static void EachOwned(Node& node, const Visit& visit) {
    if (node.is(Op::kCallOnce)) return;
    for (auto& [key, value] : node.attrs)
      if (auto* const ref = std::get_if<FunctionRef>(&value)) visit(ref->name);
    if (!node.body.empty()) visit(node.body);
  }

  // Number of functions if each caller owns those that do not stay shared; above the limit, any number.
  size_t Needed() {
    expanded_.clear();
    size_t sum = 0;
    for (const std::string& name : entries_) sum += Expanded(name);
    return sum;
  }

  size_t Expanded(const std::string& name) {
    const auto [known, fresh] = expanded_.try_emplace(name, 1);
    if (!fresh) return known->second;
    size_t sum = 1;
    for (const auto& node : module_.Find(name)->nodes)
      EachOwned(*node, [&](const std::string& callee) { sum += Stays(callee) ? 0 : Expanded(callee); });
    return known->second = std::min(sum, kMostFunctions + 1);
  }

  bool Stays(const std::string& name) { return shares_ && !fixed_.contains(name) && IsClosed(name); }

  // True if nothing in the function and its callees depends on the caller: no operand is a variable, a list
  // or of unknown type, and all ops are translated.
  bool IsClosed(const std::string& name) {
    const auto [known, fresh] = closed_.try_emplace(name, false);
    if (!fresh) return known->second;
    const Function& f = *module_.Find(name);
    const auto is_open = [&](ValueId input) {
      const DType dtype = f.value(input).type.dtype;
      return dtype == DType::kNone || dtype == DType::kResource || dtype == DType::kVariant;
    };
    bool closed = std::ranges::none_of(f.inputs, is_open);
    for (const auto& node : f.nodes) {
      closed = closed && !node->is(Op::kOpaque) && !Has(node->op, kList);
      for (const std::string& callee : References(*node)) closed = closed && IsClosed(callee);
    }
    return known->second = closed;
  }

  void Own(std::string& name) {
    if (owned_.insert(name).second || Stays(name)) return;
    auto copy = Clone(*module_.Find(name), module_.UniqueName(name + "_" + std::to_string(++copies_[name])));
    owned_.insert(name = copy->name);
    module_.functions.push_back(std::move(copy));
  }

  // Handle of a variable or of a lookup table.
  static bool IsHandle(const Function& f, const Node& node) {
    return node.is(Op::kVarHandle) ||
           (node.is(Op::kOpaque) && node.operands.empty() && node.results.size() == 1 &&
            f.value(node.results[0]).type.dtype == DType::kResource);
  }

  // Recreates a variable's handle inside the callee and removes it from the loop variables.
  void NameVariables(Function& f, Node& node) {
    const Uses uses(f);
    const bool loop = node.is(Op::kWhile);
    const size_t skip = node.is(Op::kIf) ? 1 : 0;
    for (size_t i = node.operands.size(); i-- > skip;) {
      if (node.operands[i] == kNoValue) continue;
      const Node* handle = uses.producer(node.operands[i]);
      if (!handle || !IsHandle(f, *handle)) continue;
      if (loop && !PassesThrough(node, i)) continue;
      for (const std::string& name : References(node)) {
        Function& callee = *module_.Find(name);
        if (i - skip >= callee.inputs.size()) continue;
        Node& copy = callee.InsertNode(0, handle->op, {}, {f.value(node.operands[i]).type}, handle->attrs);
        copy.name = handle->name;
        callee.ReplaceUses(callee.inputs[i - skip], copy.results[0]);
      }
      if (loop) Drop(f, node, i);
    }
  }

  bool PassesThrough(const Node& loop, size_t i) const {
    const Function& body = *module_.Find(loop.attrs.function("body_subgraph_index")->name);
    return i < body.inputs.size() && i < body.outputs.size() && body.inputs[i] == body.outputs[i];
  }

  void Drop(Function& f, Node& loop, size_t i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    for (const std::string& name : References(loop)) {
      Function& callee = *module_.Find(name);
      const bool is_body = name == loop.attrs.function("body_subgraph_index")->name;
      callee.inputs.erase(callee.inputs.begin() + at);
      if (i < callee.input_names.size()) callee.input_names.erase(callee.input_names.begin() + at);
      if (!is_body) continue;
      callee.outputs.erase(callee.outputs.begin() + at);
      if (i < callee.output_names.size()) callee.output_names.erase(callee.output_names.begin() + at);
    }
    f.ReplaceUses(loop.results[i], loop.operands[i]);
    loop.operands.erase(loop.operands.begin() + at);
    loop.results.erase(loop.results.begin() + at);
  }

  Module& module_;
  const std::vector<std::string> entries_;
  std::set<std::string> owned_, fixed_;  // by name; fixed_: options set the input shapes of these entries
  std::set<const Function*> seen_, named_;
  std::map<std::string, size_t> expanded_, copies_;
  std::map<std::string, bool> closed_;
  bool shares_ = false;
};

}  // namespace

Status InlineCalls(Context& context) {
  Module& module = context.module;
  FUSEBOX_TRY(Verify(module));  // rejects recursion
  Inliner inliner(module, [&](const Node& node) {
    const auto* const ref = node.is(Op::kCall) ? node.attrs.function("subgraph") : nullptr;
    return ref ? module.Find(ref->name) : nullptr;
  });
  std::vector<std::string> entries;
  for (const Signature& s : module.signatures) entries.push_back(s.function);
  for (const auto& name : entries) FUSEBOX_TRY(inliner.Run(*module.Find(name)));
  FUSEBOX_TRY(Owner(context, std::move(entries)).Run());
  RemoveUnreachable(module);
  return {};
}

Status InlineComposites(Context& context) {
  if (context.options.composites == Composites::kKeep) return {};
  Module& module = context.module;
  Inliner inliner(module, [&](const Node& node) -> const Function* {
    if (!node.is(Op::kStablehloComposite) || node.body.empty() || IsInternal(node)) return nullptr;
    const Function* const body = module.Find(node.body);
    return IsPlaceholder(module, *body) ? nullptr : body;
  });
  for (const auto& f : module.functions) FUSEBOX_TRY(inliner.Run(*f));
  RemoveUnreachable(module);
  return {};
}

}  // namespace fusebox::converter
