// SPDX-License-Identifier: Apache-2.0
#include "host/fusion/site.h"

#include <algorithm>

#include "host/eval/eval.h"
#include "host/eval/moved.h"
#include "host/tflite/tflite.h"

namespace fusebox {

Status CompleteOptions(Registry& registry, Node& node) {
  if (!node.is(Op::kCustom)) return tflite::CheckOptions(node.op, node.attrs).At(Name(node.op));
  registry.FillOptions(node);
  return registry.CheckOptions(node).At(node.name);
}

Status CheckKernels(Registry& registry, const Function& replacement, bool kernels_elsewhere) {
  for (const auto& node : replacement.nodes) {
    if (Has(node->op, kHost)) continue;
    if (kernels_elsewhere && node->is(Op::kCustom) && registry.KernelsOf(FBX_OP_CUSTOM, node->name).empty())
      continue;
    FUSEBOX_TRY(ChooseKernel(registry, replacement, *node));
  }
  return {};
}

Status CheckVariables(const Function& replacement) {
  for (ValueId v = 0; v < replacement.value_count(); ++v)
    if (replacement.value(v).initial)
      return Unsupported(
          "a variable has an initial value, but a .tflite file only stores that it starts as zero");
  return {};
}

namespace {

ValueId AddConstant(Function& to, const Value& constant) {
  const ValueId bound = to.AddConst(constant.type, constant.data, constant.name);
  to.value(bound).quant = constant.quant;
  return bound;
}

}  // namespace

std::vector<ValueId> AddOperands(Function& replacement, const Function& caller, const Node& composite) {
  std::vector<ValueId> operands;
  for (const ValueId v : composite.operands) {
    const ValueId input = v == kNoValue ? replacement.AddInput(Type{})
                                        : replacement.AddInput(caller.value(v).type, caller.value(v).name);
    if (v != kNoValue) replacement.value(input).quant = caller.value(v).quant;
    operands.push_back(v == kNoValue ? kNoValue : input);
  }
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] != kNoValue && caller.value(composite.operands[i]).is_const())
      operands[i] = AddConstant(replacement, caller.value(composite.operands[i]));
  return operands;
}

void BindConstants(Function& body, const Function& caller, const Node& composite) {
  for (size_t i = 0; i < composite.operands.size() && i < body.inputs.size(); ++i) {
    const ValueId v = composite.operands[i];
    if (v != kNoValue && caller.value(v).is_const())
      body.ReplaceUses(body.inputs[i], AddConstant(body, caller.value(v)));
  }
}

Status InferAndFold(Registry& registry, Module& module, Function& function) {
  const Node& node = *function.nodes.back();
  FUSEBOX_TRY(InferNode(registry, module, function, node));
  FUSEBOX_TRY(MoveQuant(registry, function, node).At([&] { return Describe(function, node); }));
  FoldLast(registry, module, function);
  return {};
}

std::vector<Tensor> ConstantsOf(const Function& caller, const Node& composite) {
  std::vector<Tensor> out;
  for (ValueId v : composite.operands) {
    out.push_back(v == kNoValue ? Tensor{} : Tensor{caller.value(v).type, caller.value(v).data});
  }
  return out;
}

std::vector<bool> UsedResults(const Function& caller, const Node& composite) {
  const Uses uses(caller);
  std::vector<bool> out;
  for (ValueId v : composite.results) out.push_back(v != kNoValue && !uses.readers(v).empty());
  return out;
}

namespace {

// Ops that only move the data of a fused op's operands and results. Not GATHER: a lookup may be the fused op.
bool MovesData(const Node& node) {
  return (Has(node.op, kMovesData) && !node.is(Op::kGather)) || node.is(Op::kFill) || node.is(Op::kCast);
}

}  // namespace

void Stamp(Function& replacement, const Node& composite, const RuleReport& rule) {
  const auto provenance = std::make_shared<const Provenance>(
      Provenance{rule.plugin, rule.plugin_version, rule.rule, composite.name});
  for (auto& node : replacement.nodes) {
    node->location = {};  // InlineAt prefixes the composite's
    node->location.layer = composite.location.layer;
    if (replacement.nodes.size() == 1 || !MovesData(*node)) node->fused = provenance;
  }
}

namespace {

// The body with constants of the site bound, and with inputs and outputs in the order of the node's operands
// and results.
std::unique_ptr<Function> ShapeBody(const Function& body, std::string name, const Function& replacement,
                                    const Node& node, std::string& why) {
  auto kept = Clone(body, std::move(name));
  std::vector<ValueId> inputs;
  for (ValueId operand : node.operands) {
    const auto at = std::find(replacement.inputs.begin(), replacement.inputs.end(), operand);
    const ValueId input = at == replacement.inputs.end()
                              ? kNoValue
                              : kept->inputs[static_cast<size_t>(at - replacement.inputs.begin())];
    if (input != kNoValue && std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
      inputs.push_back(input);
    } else {  // computed or constant at the site, a repeated operand, or absent
      const Type type = operand == kNoValue ? Type{DType::kF32, Shape{0}} : replacement.value(operand).type;
      inputs.push_back(kept->AddValue(type, "unused"));
    }
  }
  const Uses uses(*kept);
  for (ValueId v : kept->inputs) {
    const bool read = !uses.readers(v).empty();
    if (read && !kept->value(v).is_const() && std::find(inputs.begin(), inputs.end(), v) == inputs.end()) {
      why = "an operand of the body does not reach the fused op unchanged";
      return nullptr;
    }
  }
  std::vector<ValueId> outputs;
  for (ValueId result : node.results) {
    const auto at = std::find(replacement.outputs.begin(), replacement.outputs.end(), result);
    if (at == replacement.outputs.end()) {
      why = "a result of the fused op is not a result of the body";
      return nullptr;
    }
    outputs.push_back(kept->outputs[static_cast<size_t>(at - replacement.outputs.begin())]);
  }
  kept->inputs = std::move(inputs);
  kept->outputs = std::move(outputs);
  kept->input_names.clear();
  kept->output_names.clear();
  return kept;
}

}  // namespace

void KeepBody(Module& module, const Function& caller, const Node& composite, Function& replacement,
              FusionOptions::KeepBodies keep, std::vector<std::string>& notes) {
  using enum FusionOptions::KeepBodies;
  const Function* body = composite.body.empty() ? nullptr : module.Find(composite.body);
  if (keep == kNone || !body) return;
  if (replacement.nodes.size() != 1) {
    const bool any_custom = std::any_of(replacement.nodes.begin(), replacement.nodes.end(),
                                        [](const auto& n) { return n->is(Op::kCustom); });
    if (any_custom || keep == kAll)
      notes.push_back("the body is not kept: it was replaced by more than one op");
    return;
  }
  Node& node = *replacement.nodes[0];
  if (keep == kCustom && !node.is(Op::kCustom)) return;
  if (IsPlaceholder(module, *body)) {
    notes.push_back("the body is not kept: it is a placeholder");
    return;
  }
  const auto bound = Clone(*body, body->name);
  BindConstants(*bound, caller, composite);
  std::string why;
  auto kept = ShapeBody(*bound, module.UniqueName("body." + composite.name), replacement, node, why);
  if (!kept) {
    notes.push_back("the body is not kept: " + why);
    return;
  }
  node.body = kept->name;
  module.functions.push_back(std::move(kept));
}

}  // namespace fusebox
