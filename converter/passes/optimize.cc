// SPDX-License-Identifier: Apache-2.0
// Runs the rules of optimize/, constant folding and sharing to a fixpoint. Then composites that no rule has
// matched are lowered, and it starts again.
#include "converter/import/tables/composites.h"
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter {
namespace {

// Graphs need few rounds; the limit only prevents an endless loop of a faulty rule.
constexpr int kRounds = 64;

Status Optimize(Context& context, Function& f) {
  for (int round = 0; round < kRounds; ++round) {
    bool changed = optimize::Sweep(context, f);
    changed |= LowerComposites(context.module, f, Lowered::kFoldable) > 0;
    FUSEBOX_ASSIGN(const int folded, Fold(context.registry, context.module, f));
    changed |= folded > 0;
    if (changed || optimize::Share(f)) continue;
    if (LowerComposites(context.module, f, Lowered::kAll) == 0) break;
  }
  return {};
}

}  // namespace

Status Optimize(Context& context) {
  std::set<std::string> internal;
  for (const auto& f : context.module.functions)
    for (const auto& node : f->nodes)
      if (IsInternal(*node)) internal.insert(node->body);
  for (const auto& f : context.module.functions)
    if (!internal.contains(f->name)) FUSEBOX_TRY(Optimize(context, *f).At("function " + f->name));
  RemoveUnreachable(context.module);
  return {};
}

}  // namespace fusebox::converter
