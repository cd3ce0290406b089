// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/verify/verify.h"

namespace fusebox::verify {
namespace {

// Moves the node into a function of its operands. Absent operands and variables are inputs without a type.
void Isolate(const Function& f, const Node& node, Module& scratch, std::vector<Tensor>& constants) {
  Function& alone = scratch.Add("alone");
  std::vector<Type> types;
  std::vector<ValueId> operands;
  for (ValueId v : node.operands) {
    const bool state = v != kNoValue && f.value(v).is_variable && !Uses(f).producer(v);
    const ValueId input = alone.AddInput(v == kNoValue || state ? Type{} : f.value(v).type);
    if (v != kNoValue && !state) alone.value(input).quant = f.value(v).quant;
    operands.push_back(v == kNoValue ? kNoValue : input);
    constants.push_back(v == kNoValue ? Tensor{} : Tensor{f.value(v).type, f.value(v).data});
    if (!state) continue;  // the body keeps its own
    operands.back() = alone.AddValue(f.value(v).type);
    alone.value(operands.back()).is_variable = true;
    alone.value(operands.back()).quant = f.value(v).quant;
  }
  for (ValueId v : node.results) types.push_back(v == kNoValue ? Type{} : f.value(v).type);
  Node& copy = alone.AddNode(node.op, std::move(operands), types, node.attrs);
  copy.name = node.name;
  copy.version = node.version;
  copy.raw_options = node.raw_options;
  for (size_t i = 0; i < node.results.size(); ++i)
    if (node.results[i] != kNoValue) alone.value(copy.results[i]).quant = f.value(node.results[i]).quant;
  alone.outputs = copy.results;
}

// Returns whether the body does not read a quantized constant of the op, because it has float weights.
bool HasFloatWeights(const Function& f, const Node& node, const Function& body) {
  const Uses uses(body);
  for (size_t i = 0; i < node.operands.size() && i < body.inputs.size(); ++i) {
    if (node.operands[i] == kNoValue) continue;
    const Value& value = f.value(node.operands[i]);
    if (value.is_const() && value.quant && uses.readers(body.inputs[i]).empty()) return true;
  }
  return false;
}

// Returns why a node cannot be compared with its body, or an empty string if it can.
std::string WhyNot(const Function& f, const Node& node, const Function* body) {
  if (!body) return "the file has no kept body";
  if (std::find(node.results.begin(), node.results.end(), kNoValue) != node.results.end())
    return "a result of the op is absent";
  if (HasFloatWeights(f, node, *body))
    return "its weights are quantized, but those of its body are not; compare the file with the float model";
  return "";
}

}  // namespace

Result<std::vector<Row>> VerifyModel(const Module& module, std::shared_ptr<Registry> registry,
                                     const Options& options) {
  std::vector<Row> rows;
  for (const auto& f : module.functions) {
    for (const auto& node : f->nodes) {
      if (!node->fused) continue;
      Row row{.function = f->name,
              .node = Describe(*f, *node),
              .op = node->is(Op::kCustom) ? node->name : std::string(Name(node->op)),
              .plugin = node->fused->plugin};
      const Function* body = node->body.empty() ? nullptr : module.Find(node->body);
      row.verdict.why = WhyNot(*f, *node, body);
      if (!row.verdict.why.empty()) {
        rows.push_back(std::move(row));
        continue;
      }
      Module scratch;
      std::vector<Tensor> constants;
      Isolate(*f, *node, scratch, constants);
      const std::vector<bool> used(node->results.size(), true);
      FUSEBOX_ASSIGN(row.verdict, VerifyFused(module, *body, scratch, *scratch.functions[0], constants, used,
                                              ToleranceOf(*registry, *node), registry, options));
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace fusebox::verify
