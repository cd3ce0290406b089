// SPDX-License-Identifier: Apache-2.0
// Quantizers calibrate the result of an op that only moves elements like any other, but no kernel moves
// between two scales. The result keeps the operand's scale, and QUANTIZE follows.
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"
#include "host/eval/eval.h"

namespace fusebox::converter {
namespace {

bool IsScaled(const Value& value) { return value.quant != nullptr && !value.quant->scales.empty(); }

// The operand with another scale than the results, which no kernel here supports; or nothing.
ValueId MovedFrom(Registry& registry, const Function& f, const Node& node) {
  const OperandList& list = Info(node.op).operands;
  if (!Has(node.op, kMovesData) || list.max < 0 || node.results.empty()) return kNoValue;
  const ValueId from = node.operands[static_cast<size_t>(list.data)];
  const ValueId to = node.results[0];
  if (from == kNoValue || to == kNoValue) return kNoValue;
  const Value& data = f.value(from);
  const Value& result = f.value(to);
  const bool differ = IsScaled(data) && IsScaled(result) && data.type.dtype == result.type.dtype &&
                      !(*data.quant == *result.quant);
  return differ && !ChooseKernel(registry, f, node) ? from : kNoValue;
}

}  // namespace

Status RequantizeMoves(Context& context) {
  for (const auto& f : context.module.functions) {
    FUSEBOX_TRY(RewriteNodes(context.module, *f, context.registry, [&](Translation& t) -> Result<bool> {
      const Node& node = t.node();
      const ValueId from = MovedFrom(context.registry, *f, node);
      if (from == kNoValue) return false;
      std::vector<Type> types;
      for (const ValueId v : node.results) types.push_back(f->value(v).type);
      const ValueIds moved = t.EmitTyped(node.op, node.operands, types, node.attrs).results;
      for (size_t i = 0; i < moved.size(); ++i) {
        f->value(moved[i]).quant = f->value(from).quant;
        const ValueId scaled = t.Typed(Op::kQuantize, {moved[i]}, types[i]);
        f->value(scaled).quant = f->value(node.results[i]).quant;
        t.SetResult(i, scaled);
      }
      return true;
    }));
  }
  return {};
}

}  // namespace fusebox::converter
