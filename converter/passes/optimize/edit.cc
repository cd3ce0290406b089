// SPDX-License-Identifier: Apache-2.0
#include "converter/passes/optimize/edit.h"

#include <algorithm>

#include "host/eval/infer_hook.h"

namespace fusebox::converter::optimize {
namespace {

std::vector<std::vector<Rewrite>> ByOp() {
  std::vector<std::vector<Rewrite>> out(AllOps().size());
  for (const auto& table : {NeutralRules(), PatternRules(), PreluRules(), AffineRules(), ActivationRules(),
                            DenseRules(), ConvRules(), ReshapeRules(), NarrowRules(), LayoutRules()})
    for (const Rule& rule : table)
      for (const OpInfo& info : AllOps())
        if (rule.IsFor(info.op)) out[static_cast<size_t>(info.op)].push_back(rule.rewrite);
  return out;
}

// Returns whether activations of the node have scales. Rules create values without scales, so they skip such
// nodes.
bool IsQuantized(const Function& f, const Node& node) {
  const auto stored = [&](ValueId v) { return v != kNoValue && !f.value(v).is_const() && f.value(v).quant; };
  return std::ranges::any_of(node.operands, stored) || std::ranges::any_of(node.results, stored);
}

}  // namespace

bool HasActivation(const Node& node) { return node.attrs.str("fused_activation_function", "NONE") != "NONE"; }

Padding SamePadding(int64_t in, int64_t stride, int64_t filter, int64_t dilation) {
  const int64_t out = (in + stride - 1) / stride;
  const int64_t reach = (filter - 1) * dilation + 1;
  const int64_t total = std::max<int64_t>((out - 1) * stride + reach - in, 0);
  return {total / 2, total - total / 2};
}

Edit::Edit(Context& context, Function& function)
    : Rewriter(function, InferWith(context.registry, context.module)), context_(context) {}

std::optional<std::vector<double>> Edit::Floats(ValueId v) const {
  return is_f32(v) ? ConstFloats(f(), v) : std::nullopt;
}

std::optional<double> Edit::Scalar(ValueId v) const { return is_f32(v) ? ConstScalar(f(), v) : std::nullopt; }

void Edit::Replace(Node& node, ValueId by) {
  const Type& from = type(node.results[0]);
  Type& to = f().value(by).type;
  if (auto refined = Refine(to, from); refined && !is_const(by)) to = *std::move(refined);
  else if (to.dtype == DType::kNone) to = from;
  Rewriter::Replace(node, by);
}

void Edit::Absorb(Node& node, ValueId by) {
  if (std::string& name = f().value(node.results[0]).name; !name.empty()) std::swap(f().value(by).name, name);
  Replace(node, by);
}

void Edit::Note(const Node& node, const std::string& text) {
  std::string line = "function " + f().name + ": " +
                     (node.location.name.empty() ? std::string(Name(node.op)) : node.location.name) + ": " +
                     text;
  if (noted_.insert(line).second) context_.Note(std::move(line));
}

bool Sweep(Context& context, Function& function) {
  static const std::vector<std::vector<Rewrite>> rules = ByOp();
  bool changed = false;
  Edit edit(context, function);
  (void)edit.Walk([&](Node& node) -> Status {
    if (IsQuantized(function, node)) return {};
    for (const Rewrite rewrite : rules[static_cast<size_t>(node.op)]) {
      if (edit.is_removed(node)) break;
      changed |= rewrite(edit, node);
    }
    return {};
  });
  return changed;
}

}  // namespace fusebox::converter::optimize
