// SPDX-License-Identifier: Apache-2.0
// Afterwards there are no plain calls, and each loop, branch and composite has its own functions, which name
// the variables they use. So later passes may transform one function at a time.
#include <set>

#include "converter/import/tables/composites.h"
#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

class Inliner {
 public:
  explicit Inliner(Module& module) : module_(module) {}

  Status Inline(Function& f) {
    if (!done_.insert(f.name).second) return {};
    for (size_t i = 0; i < f.nodes.size();) {
      const auto* ref = f.nodes[i]->is(Op::kCall) ? f.nodes[i]->attrs.function("subgraph") : nullptr;
      for (const std::string& name : References(*f.nodes[i])) FUSEBOX_TRY(Inline(*module_.Find(name)));
      if (!ref) {
        ++i;
        continue;
      }
      DropCallName(*f.nodes[i]);
      const Function& callee = *module_.Find(ref->name);
      FUSEBOX_TRY(Spend(callee));
      InlineAt(f, i, callee);
    }
    return {};
  }

  Status OwnCopies(Function& f) {
    for (size_t i = 0; i < f.nodes.size(); ++i) {
      Node& node = *f.nodes[i];
      if (node.is(Op::kCallOnce)) continue;  // runs once for all callers, which must share the function
      for (auto& [name, value] : node.attrs) {
        auto* ref = std::get_if<FunctionRef>(&value);
        if (!ref) continue;
        FUSEBOX_ASSIGN(ref->name, Own(ref->name));
      }
      if (!node.body.empty()) {
        FUSEBOX_ASSIGN(node.body, Own(node.body));
      }
      for (const std::string& name : References(node)) FUSEBOX_TRY(OwnCopies(*module_.Find(name)));
    }
    return {};
  }

  // Runs after all copies exist, because copies are made from the unmodified functions.
  void NameAllVariables(Function& f) {
    for (const auto& node : f.nodes) {
      const std::vector<std::string> names = References(*node);
      if (node->is(Op::kCallOnce) || names.empty()) continue;
      NameVariables(f, *node);
      for (const std::string& name : names) NameAllVariables(*module_.Find(name));
    }
  }

 private:
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
    constexpr size_t kMaxCopies = size_t{1} << 20;
    copies_ += callee.nodes.size() + 1;
    if (copies_ > kMaxCopies)
      return Unsupported("function " + callee.name + ": its nested calls expand to more than " +
                         std::to_string(kMaxCopies) + " nodes");
    return {};
  }

  Result<std::string> Own(const std::string& name) {
    if (owned_.insert(name).second) return name;
    FUSEBOX_TRY(Spend(*module_.Find(name)));
    constexpr size_t kMaxFunctions = size_t{1} << 13;  // function lookup is linear
    if (module_.functions.size() >= kMaxFunctions)
      return Unsupported(
          "function " + name + ": more than " + std::to_string(kMaxFunctions) +
          " copies of functions shared by branches, loops and composites; share fewer functions");
    auto copy = Clone(*module_.Find(name), module_.UniqueName(name));
    std::string made = copy->name;
    owned_.insert(made);
    module_.functions.push_back(std::move(copy));
    return made;
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
  std::set<std::string> done_, owned_;
  size_t copies_ = 0;
};

}  // namespace

Status InlineCalls(Context& context) {
  FUSEBOX_TRY(Verify(context.module));  // rejects recursion
  Inliner inliner(context.module);
  std::vector<std::string> entries;
  for (const Signature& s : context.module.signatures) entries.push_back(s.function);
  for (const auto& name : entries) FUSEBOX_TRY(inliner.Inline(*context.module.Find(name)));
  for (const auto& name : entries) FUSEBOX_TRY(inliner.OwnCopies(*context.module.Find(name)));
  for (const auto& name : entries) inliner.NameAllVariables(*context.module.Find(name));
  RemoveUnreachable(context.module);
  return {};
}

Status InlineComposites(Context& context) {
  if (context.options.composites == Composites::kKeep) return {};
  for (bool again = true; again;) {
    again = false;
    for (size_t k = 0; k < context.module.functions.size(); ++k) {
      Function& f = *context.module.functions[k];
      for (size_t i = 0; i < f.nodes.size();) {
        const Node& node = *f.nodes[i];
        const Function* body =
            node.is(Op::kStablehloComposite) && !node.body.empty() ? context.module.Find(node.body) : nullptr;
        if (!body || IsInternal(node) || IsPlaceholder(context.module, *body)) {
          ++i;
          continue;
        }
        InlineAt(f, i, *body);
        again = true;
      }
    }
  }
  RemoveUnreachable(context.module);
  return {};
}

}  // namespace fusebox::converter
