// SPDX-License-Identifier: Apache-2.0
#include "host/graph/calls.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace fusebox {
namespace {

constexpr int kMaxChain = 100;

using Ids = std::span<const ValueId>;

class Calls {
 public:
  Calls(const Module& module, Strictness strictness) : writable_(strictness == Strictness::kWritable) {
    entries_.reserve(module.functions.size());
    for (const auto& function : module.functions) entries_.push_back({function.get(), {}, kUnseen});
    std::ranges::sort(entries_, {}, NameOf);
  }

  Status Run() {
    for (Entry& entry : entries_) {
      for (const auto& node : entry.function->nodes) {
        Status status = OneNode(entry, *node);
        if (!status)
          return std::move(status)
              .At(Describe(*entry.function, *node))
              .At("function " + entry.function->name);
      }
    }
    for (Entry& entry : entries_) FUSEBOX_TRY(Chain(entry));
    return {};
  }

 private:
  static constexpr int kUnseen = 0;
  static constexpr int kOpen = -1;
  struct Entry {
    const Function* function;
    std::vector<Entry*> callees;
    int depth;  // of the longest call chain from here
  };
  static std::string_view NameOf(const Entry& entry) { return entry.function->name; }

  Entry* Find(std::string_view name) {
    const auto found = std::ranges::lower_bound(entries_, name, {}, NameOf);
    return found == entries_.end() || NameOf(*found) != name ? nullptr : &*found;
  }

  Status OneNode(Entry& entry, const Node& node) {
    const Function& caller = *entry.function;
    for (const std::string& name : References(node)) {
      Entry* const callee = Find(name);
      if (callee == nullptr) return Invalid("refers to function " + name + ", which does not exist");
      entry.callees.push_back(callee);
    }
    const Ids operands = node.operands;
    const Ids results = node.results;
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
        return node.body.empty() ? Status()
                                 : Interface(caller, *Find(node.body)->function, operands, results);
      default: return {};
    }
  }

  Status Callee(const Function& caller, const Node& node, std::string_view attribute, Ids operands,
                std::optional<Ids> results) {
    const FunctionRef* reference = node.attrs.function(attribute);
    if (reference == nullptr) {
      return writable_ ? Status(Invalid("lacks attribute " + std::string(attribute))) : Status();
    }
    return Interface(caller, *Find(reference->name)->function, operands, results);
  }

  Status Interface(const Function& caller, const Function& callee, Ids operands,
                   std::optional<Ids> results) const {
    FUSEBOX_TRY(Match(caller, operands, callee, callee.inputs, "operands and the inputs of ", callee.name));
    if (!results) return {};
    return Match(caller, *results, callee, callee.outputs, "results and the outputs of ", callee.name);
  }

  static Status Condition(const Node& node) {
    return node.operands.empty() ? Status(Invalid("a loop must have operands")) : Status();
  }

  // Requires equal number and compatible element types.
  static Status Match(const Function& a, Ids left, const Function& b, Ids right, std::string_view what,
                      std::string_view whose) {
    if (left.size() != right.size()) {
      return Invalid(std::string(what).append(whose) + " differ in number: " + std::to_string(left.size()) +
                     " and " + std::to_string(right.size()));
    }
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] == kNoValue || right[i] == kNoValue) continue;
      const DType x = a.value(left[i]).type.dtype;
      const DType y = b.value(right[i]).type.dtype;
      if (x == y || x == DType::kNone || y == DType::kNone) continue;
      return Invalid(std::string(what).append(whose) + " differ in element type at " + std::to_string(i) +
                     ": " + std::string(Name(x)) + " and " + std::string(Name(y)));
    }
    return {};
  }

  // Depth-first without recursion: the input determines the depth.
  static Status Chain(Entry& start) {
    struct Frame {
      Entry* entry;
      size_t next = 0;
      int depth = 1;
    };
    if (start.depth != kUnseen) return {};
    std::vector<Frame> stack;
    const auto push = [&](Entry& entry) {
      entry.depth = kOpen;
      stack.push_back({&entry});
    };
    push(start);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const std::string& name = frame.entry->function->name;
      if (frame.next == frame.entry->callees.size()) {
        if (frame.depth > kMaxChain) return Unsupported("function " + name + ": calls nest too deeply");
        const int depth = frame.entry->depth = frame.depth;
        stack.pop_back();
        if (!stack.empty()) stack.back().depth = std::max(stack.back().depth, depth + 1);
        continue;
      }
      Entry& callee = *frame.entry->callees[frame.next++];
      if (callee.depth == kUnseen) {
        push(callee);
      } else if (callee.depth == kOpen) {
        return Invalid("function " + callee.function->name + ": is recursive through " + name);
      } else {
        frame.depth = std::max(frame.depth, callee.depth + 1);
      }
    }
    return {};
  }

  const bool writable_;
  std::vector<Entry> entries_;  // by name
};

}  // namespace

Status VerifyCalls(const Module& module, Strictness strictness) { return Calls(module, strictness).Run(); }

std::vector<Function*> Reachable(const Module& module, std::vector<std::string> from) {
  std::vector<Function*> reached;
  std::set<std::string> seen;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!seen.insert(from[i]).second) continue;
    Function* const function = module.Find(from[i]);
    if (function == nullptr) continue;
    reached.push_back(function);
    for (std::string& name : References(*function)) from.push_back(std::move(name));
  }
  return reached;
}

CallCounts CountCalls(const Module& module) {
  CallCounts counts;
  for (const Signature& signature : module.signatures) ++counts[signature.function];
  for (const auto& function : module.functions)
    for (const auto& node : function->nodes)
      for (const std::string& name : References(*node)) ++counts[name];
  return counts;
}

}  // namespace fusebox
