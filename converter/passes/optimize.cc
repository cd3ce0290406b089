// SPDX-License-Identifier: Apache-2.0
// Runs the rules of optimize/, constant folding and sharing to a fixpoint.
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter {
namespace {

// Graphs need few rounds; the limit only prevents an endless loop of a faulty rule.
constexpr int kRounds = 64;

Status Optimize(Context& context, Function& f) {
  for (int round = 0; round < kRounds; ++round) {
    bool changed = optimize::Sweep(context, f);
    FUSEBOX_ASSIGN(const int folded, Fold(context.registry, context.module, f));
    changed |= folded > 0;
    if (!changed && !optimize::Share(f)) break;
  }
  return {};
}

}  // namespace

Status Optimize(Context& context) {
  for (const auto& f : context.module.functions) FUSEBOX_TRY(Optimize(context, *f).At("function " + f->name));
  return {};
}

}  // namespace fusebox::converter
