// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "host/eval/infer_hook.h"
#include "host/eval/moved.h"
#include "host/graph/calls.h"

namespace fusebox {
namespace {

// Sets the types of the node's results. `place` is for messages.
Status SetResults(Function& function, const Node& node, const std::vector<Type>& types) {
  for (size_t i = 0; i < types.size() && i < node.results.size(); ++i) {
    if (node.results[i] == kNoValue) continue;
    Type& declared = function.value(node.results[i]).type;
    auto refined = Refine(types[i], declared);
    if (!refined) {
      return Invalid(fmt::format("result {} is declared {}, but infer returns {}", i, ToString(declared),
                                 ToString(types[i])));
    }
    declared = *std::move(refined);
  }
  return {};
}

// The common part of the types of two branches.
Type Common(const Type& a, const Type& b) {
  if (a.dtype != b.dtype || !a.shape.ranked() || !b.shape.ranked() || a.shape.rank() != b.shape.rank())
    return {a.dtype, Shape()};
  Type common = a;
  for (size_t i = 0; i < common.shape.dims().size(); ++i) {
    if (b.shape[i] != a.shape[i]) common.shape.dims()[i] = Shape::kUnknown;
  }
  return common;
}

std::vector<Type> OutputTypes(const Function& function) {
  std::vector<Type> types;
  for (const ValueId id : function.outputs) types.push_back(function.value(id).type);
  return types;
}

Status InferHostNode(const Module& module, Function& function, const Node& node) {
  const bool control = Info(node.op).effects == Effects::kControl;
  if (!control) {
    if (node.is(Op::kHashtableFind) && node.operands.size() == 3 && !node.results.empty()) {
      const Type keys = function.value(node.operands[1]).type;
      const Type value{function.value(node.operands[2]).type.dtype, keys.shape};
      return SetResults(function, node, {value}).At([&] { return Describe(function, node); });
    }
    return {};
  }
  FUSEBOX_ASSIGN(const std::vector<std::string> callees, Callees(module, node));
  if (callees.empty()) return {};
  std::vector<Type> types = OutputTypes(*module.Find(callees.back()));
  if (node.is(Op::kIf)) {
    const std::vector<Type> then = OutputTypes(*module.Find(callees.front()));
    for (size_t i = 0; i < types.size() && i < then.size(); ++i) types[i] = Common(then[i], types[i]);
  }
  if (node.is(Op::kWhile)) {
    for (size_t i = 0; i < types.size() && i < node.operands.size(); ++i) {
      if (node.operands[i] != kNoValue) types[i] = Common(types[i], function.value(node.operands[i]).type);
    }
  }
  return SetResults(function, node, types).At([&] { return Describe(function, node); });
}

Status InferKernelNode(const KernelRef& kernel, Function& function, const Node& node) {
  // An operand without a type (from a source op without translation) prevents inference.
  for (ValueId v : node.operands)
    if (v != kNoValue && function.value(v).type.dtype == DType::kNone) return {};
  const NodeView view(function, node);
  HostCall call(*kernel.plugin, &SerialServices());
  std::vector<Type> types;
  Inference inference(ProperResults(node), types);
  FUSEBOX_TRY(CallInfer(*kernel.kernel, call, *view.abi(), inference));
  for (size_t i = 0; i < inference.quants().size() && i < node.results.size(); ++i) {
    if (node.results[i] == kNoValue) continue;
    auto& quant = function.value(node.results[i]).quant;
    if (!quant) quant = inference.quants()[i];
  }
  const auto states = StateOperands(node.op);
  for (size_t i = 0; types.size() < node.results.size() && i < states.size(); ++i) {
    const size_t operand = static_cast<size_t>(states[i]);
    const bool present = operand < node.operands.size() && node.operands[operand] != kNoValue;
    types.push_back(present ? function.value(node.operands[operand]).type : Type());
  }
  return SetResults(function, node, types);
}

// Infers a module from one function down. Inputs of a callee with a single call get the types of the call.
class Inferrer {
 public:
  Inferrer(Registry& registry, Module& module)
      : registry_(registry), module_(module), calls_(CountCalls(module)) {}

  Status Run(Function& function, int depth = 0) {
    // The types in a shared function do not depend on the call.
    if (shared_.contains(&function)) return {};
    ++runs_;
    if (depth > kMaxDepth) return Invalid(fmt::format("function {}: calls nest too deeply", function.name));
    for (const auto& node : function.nodes) {
      FUSEBOX_TRY(IntoCallees(function, *node, depth).At(fmt::format("function {}", function.name)));
      if (Has(node->op, kHost)) {
        FUSEBOX_TRY(InferHostNode(module_, function, *node).At(fmt::format("function {}", function.name)));
        continue;
      }
      const auto kernel = ChooseKernel(registry_, function, *node);
      if (!kernel) continue;
      FUSEBOX_TRY(InferKernelNode(*kernel, function, *node)
                      .At([&] { return Describe(function, *node); })
                      .At(fmt::format("function {}", function.name)));
    }
    if (calls_[function.name] > 1) shared_.insert(&function);
    return {};
  }

 private:
  static constexpr int kMaxDepth = 64;
  // Nested loops are inferred twice per level if they change types; beyond this number, once.
  static constexpr size_t kMostTrials = 4096;

  Status IntoCallees(Function& function, const Node& node, int depth) {
    if (!Has(node.op, kHost)) return {};
    FUSEBOX_ASSIGN(const std::vector<std::string> names, Callees(module_, node));
    if (node.is(Op::kWhile) && names.size() == 2)
      return IntoLoop(function, node, *module_.Find(names[0]), *module_.Find(names[1]), depth);
    const size_t first = node.is(Op::kIf) ? 1 : 0;  // IF: operand 0 is the condition
    for (const std::string& name : names) {
      Function& callee = *module_.Find(name);
      if (calls_[name] == 1 && !node.is(Op::kCallOnce)) Pass(function, node, first, callee);
      if (node.is(Op::kIf)) RunIfPossible(callee, depth + 1);
      else FUSEBOX_TRY(Run(callee, depth + 1));
    }
    return {};
  }

  // A branch or a loop's body that does not accept its types may never run: its results are unknown.
  void RunIfPossible(Function& callee, int depth) {
    if (Run(callee, depth)) return;
    for (const ValueId id : callee.outputs) {
      Value& output = callee.value(id);
      const bool is_input = std::ranges::find(callee.inputs, id) != callee.inputs.end();
      if (!is_input && !output.is_const() && !output.is_variable) output.type.shape = Shape();
    }
  }

  // Refines input types by operand types unless they contradict.
  static void Pass(const Function& function, const Node& node, size_t first, Function& callee) {
    for (size_t i = 0; i < callee.inputs.size() && i + first < node.operands.size(); ++i) {
      const ValueId id = node.operands[i + first];
      if (id == kNoValue) continue;
      Type& type = callee.value(callee.inputs[i]).type;
      if (auto refined = Refine(type, function.value(id).type)) type = *std::move(refined);
    }
  }

  // Items of a list that a loop only reads have the shape of the parts of the tensor that the list is made
  // of.
  static void PassItems(const Function& function, const Node& loop, Function& body) {
    for (const auto& read : body.nodes) {
      if (!read->is(Op::kTensorListGetItem)) continue;
      const auto at = std::ranges::find(body.inputs, read->operands[0]) - body.inputs.begin();
      const auto i = static_cast<size_t>(at);
      if (i >= body.inputs.size() || i >= loop.operands.size() || body.outputs[i] != body.inputs[i]) continue;
      const auto made = std::ranges::find_if(function.nodes, [&](const auto& node) {
        return node->is(Op::kTensorListFromTensor) && node->results[0] == loop.operands[i];
      });
      if (made == function.nodes.end()) continue;
      Type item = function.value((*made)->operands[0]).type;
      if (item.shape.rank() < 1) continue;
      item.shape.dims().erase(item.shape.dims().begin());
      Type& type = body.value(read->results[0]).type;
      if (auto refined = Refine(type, item)) type = *std::move(refined);
    }
  }

  // A loop's functions take the types of the first iteration only if the body returns the same types.
  Status IntoLoop(Function& function, const Node& node, Function& cond, Function& body, int depth) {
    bool stable = false;
    if (calls_[body.name] == 1 && runs_ < kMostTrials) {
      std::vector<Type> saved;
      for (ValueId id = 0; id < body.value_count(); ++id) saved.push_back(body.value(id).type);
      Pass(function, node, 0, body);
      PassItems(function, node, body);
      stable = Run(body, depth + 1).has_value() && PreservesTypes(body);
      for (ValueId id = 0; !stable && id < body.value_count(); ++id)
        body.value(id).type = saved[static_cast<size_t>(id)];
    }
    if (!stable) RunIfPossible(body, depth + 1);
    if (stable && calls_[cond.name] == 1) Pass(function, node, 0, cond);
    return Run(cond, depth + 1);
  }

  // Behind source ops that wait for the types of their operands nothing is known; what is known must agree.
  static bool PreservesTypes(const Function& body) {
    if (body.outputs.size() != body.inputs.size()) return false;
    const bool waits =
        std::ranges::any_of(body.nodes, [](const auto& node) { return node->is(Op::kOpaque); });
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const Type& in = body.value(body.inputs[i]).type;
      const Type& out = body.value(body.outputs[i]).type;
      const bool unknown = waits && out.dtype == in.dtype && !out.shape.ranked();
      if (out != in && !unknown) return false;
    }
    return true;
  }

  Registry& registry_;
  Module& module_;
  CallCounts calls_;
  std::set<const Function*> shared_;  // that were inferred
  size_t runs_ = 0;
};

std::vector<Type> AllTypes(const Module& module) {
  std::vector<Type> types;
  for (const auto& function : module.functions) {
    for (ValueId id = 0; id < function->value_count(); ++id) types.push_back(function->value(id).type);
  }
  return types;
}

}  // namespace

Status TryInferNode(Registry& registry, const Module& module, Function& function, const Node& node) {
  if (Has(node.op, kHost)) return InferHostNode(module, function, node);
  if (MovesUnscaled(function, node)) {
    FUSEBOX_ASSIGN(const std::vector<Type> types, InferUnscaled(registry, function, node));
    return SetResults(function, node, types);
  }
  FUSEBOX_ASSIGN(const KernelRef kernel, ChooseKernel(registry, function, node));
  return InferKernelNode(kernel, function, node);
}

Status InferNode(Registry& registry, const Module& module, Function& function, const Node& node) {
  Status done = TryInferNode(registry, module, function, node);
  if (Has(node.op, kHost)) return done;
  return std::move(done).At([&] { return Describe(function, node); });
}

Status InferTypes(Registry& registry, Module& module, Function& function, bool* changed) {
  const std::vector<Type> before = changed != nullptr ? AllTypes(module) : std::vector<Type>();
  FUSEBOX_TRY(Inferrer(registry, module).Run(function));
  if (changed != nullptr) *changed = AllTypes(module) != before;
  return {};
}

}  // namespace fusebox
