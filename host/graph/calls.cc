// SPDX-License-Identifier: Apache-2.0
#include "host/graph/calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace fusebox {
namespace {

constexpr int kMaxChain = 100;

using Ids = std::span<const ValueId>;

class Calls {
 public:
  Calls(const Module& module, Strictness strictness) : writable_(strictness == Strictness::kWritable) {
    for (const auto& function : module.functions) functions_.emplace(function->name, function.get());
  }

  Status Run() {
    for (const auto& [name, function] : functions_) {
      for (const auto& node : function->nodes) {
        Status status = OneNode(*function, *node);
        if (!status)
          return std::move(status).At(Describe(*function, *node)).At("function " + std::string(name));
      }
    }
    for (const auto& [name, function] : functions_) FUSEBOX_TRY(Chain(name));
    return {};
  }

 private:
  const Function* Find(std::string_view name) const {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second;
  }

  Status OneNode(const Function& caller, const Node& node) const {
    for (const std::string& name : References(node)) {
      if (Find(name) == nullptr) return Invalid("refers to function " + name + ", which does not exist");
    }
    const Ids operands = node.operands, results = node.results;
    switch (node.op) {
      case Op::kCall: return Callee(caller, node, "subgraph", operands, results);
      case Op::kIf:
        FUSEBOX_TRY(Callee(caller, node, "then_subgraph_index", operands.subspan(1), results));
        return Callee(caller, node, "else_subgraph_index", operands.subspan(1), results);
      case Op::kWhile:
      case Op::kStablehloWhile:
        FUSEBOX_TRY(Callee(caller, node, "cond_subgraph_index", operands, std::nullopt));
        FUSEBOX_TRY(Condition(node));
        FUSEBOX_TRY(Match(caller, operands, caller, results, "the loop's operands and results", {}));
        return Callee(caller, node, "body_subgraph_index", operands, results);
      case Op::kCallOnce: return Callee(caller, node, "init_subgraph_index", operands, results);
      case Op::kStablehloComposite:
        return node.body.empty() ? Status() : Interface(caller, *Find(node.body), operands, results);
      default: return {};
    }
  }

  Status Callee(const Function& caller, const Node& node, std::string_view attribute, Ids operands,
                std::optional<Ids> results) const {
    const FunctionRef* reference = node.attrs.function(attribute);
    if (reference == nullptr) {
      return writable_ ? Status(Invalid("lacks attribute " + std::string(attribute))) : Status();
    }
    return Interface(caller, *Find(reference->name), operands, results);
  }

  Status Interface(const Function& caller, const Function& callee, Ids operands,
                   std::optional<Ids> results) const {
    FUSEBOX_TRY(Match(caller, operands, callee, callee.inputs, "operands and the inputs of ", callee.name));
    if (!results) return {};
    return Match(caller, *results, callee, callee.outputs, "results and the outputs of ", callee.name);
  }

  static Status Condition(const Node& node) {
    return node.operands.empty() ? Status(Invalid("loop over nothing")) : Status();
  }

  // Same number, and no two element types that contradict each other.
  static Status Match(const Function& a, Ids left, const Function& b, Ids right, std::string_view what,
                      std::string_view whose) {
    if (left.size() != right.size()) {
      return Invalid(std::string(what).append(whose) + " differ in number: " + std::to_string(left.size()) +
                     " and " + std::to_string(right.size()));
    }
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] == kNoValue || right[i] == kNoValue) continue;
      const DType x = a.value(left[i]).type.dtype, y = b.value(right[i]).type.dtype;
      if (x == y || x == DType::kNone || y == DType::kNone) continue;
      return Invalid(std::string(what).append(whose) + " differ in element type at " + std::to_string(i) +
                     ": " + std::string(Name(x)) + " and " + std::string(Name(y)));
    }
    return {};
  }

  // Depth-first without recursion: the input decides how deep the functions nest.
  Status Chain(std::string_view start) {
    struct Frame {
      std::string_view name;
      std::vector<std::string> callees;
      size_t next = 0;
      int depth = 1;
    };
    constexpr int kOpen = -1;
    if (depth_.contains(start)) return {};
    std::vector<Frame> stack;
    const auto push = [&](std::string_view name) {
      const Function* function = Find(name);
      depth_[function->name] = kOpen;
      stack.push_back({function->name, References(*function), 0, 1});
    };
    push(start);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.callees.size()) {
        if (frame.depth > kMaxChain)
          return Unsupported("function " + std::string(frame.name) + ": calls nest too deeply");
        const int depth = depth_[frame.name] = frame.depth;
        stack.pop_back();
        if (!stack.empty()) stack.back().depth = std::max(stack.back().depth, depth + 1);
        continue;
      }
      const std::string callee = frame.callees[frame.next++];
      const auto known = depth_.find(callee);
      if (known == depth_.end()) {
        push(callee);
      } else if (known->second == kOpen) {
        return Invalid("function " + callee + ": is recursive, by way of " + std::string(frame.name));
      } else {
        frame.depth = std::max(frame.depth, known->second + 1);
      }
    }
    return {};
  }

  const bool writable_;
  std::map<std::string_view, const Function*> functions_;
  std::map<std::string_view, int> depth_;
};

}  // namespace

Status VerifyCalls(const Module& module, Strictness strictness) { return Calls(module, strictness).Run(); }

}  // namespace fusebox
