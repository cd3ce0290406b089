// SPDX-License-Identifier: Apache-2.0
// The rules of optimize/, constant folding and sharing, until nothing is left to do.
#include "converter/passes/optimize/edit.h"

namespace fusebox::converter {
namespace {

// Each round takes something away; a graph needs few, and a mistake in a rule must not hang.
constexpr int kRounds = 64;

Status Optimize(Context& context, Function& f) {
  for (int round = 0; round < kRounds; ++round) {
    bool changed = optimize::Edit(context, f).Sweep();
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
