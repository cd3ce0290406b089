// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

DType TypeIn(const Function& f, ValueId v) { return f.value(v).type.dtype; }

// A value of the body like the caller's `from`.
ValueId AddLike(Function& body, ValueId like, const Value& from) {
  const ValueId v = body.AddValue(Type{from.type.dtype, body.value(like).type.shape}, body.value(like).name);
  body.value(v).quant = from.quant;
  return v;
}

void AdaptBody(const Function& f, const Node& node, Function& body) {
  const Uses uses(body);
  for (size_t i = 0; i < node.operands.size() && i < body.inputs.size(); ++i) {
    const ValueId v = node.operands[i];
    const ValueId input = body.inputs[i];
    if (v == kNoValue || TypeIn(body, input) != DType::kF32 || TypeIn(f, v) == DType::kF32) continue;
    const ValueId stored = AddLike(body, input, f.value(v));
    body.inputs[i] = stored;
    if (!uses.readers(input).empty()) body.InsertNode(0, Op::kDequantize, {stored}, {}).results = {input};
  }
  for (size_t i = 0; i < node.results.size() && i < body.outputs.size(); ++i) {
    const ValueId v = node.results[i];
    const ValueId output = body.outputs[i];
    if (v == kNoValue || TypeIn(body, output) != DType::kF32 || TypeIn(f, v) == DType::kF32) continue;
    const ValueId stored = AddLike(body, output, f.value(v));
    body.AddNode(Op::kQuantize, {output}, {}).results = {stored};
    body.outputs[i] = stored;
  }
}

}  // namespace

void AdaptBodies(Module& module) {
  for (const auto& f : module.functions)
    for (const auto& node : f->nodes)
      if (node->is(Op::kCustom) && !node->body.empty()) AdaptBody(*f, *node, *module.Find(node->body));
}

}  // namespace fusebox::converter::quantize
