// SPDX-License-Identifier: Apache-2.0
// The rules of optimise/, constant folding and sharing, until nothing is left to do.
#include "converter/passes/optimise/edit.h"

namespace fusebox::converter {
namespace {

// Each round takes something away; a graph needs few, and a mistake in a rule must not hang.
constexpr int kRounds = 64;

Status Optimise(Context& context, Function& f) {
  for (int round = 0; round < kRounds; ++round) {
    bool changed = optimise::Edit(context, f).Sweep();
    FUSEBOX_ASSIGN(const int folded, Fold(context.registry, context.module, f));
    changed |= folded > 0;
    if (!changed && !optimise::Share(f)) break;
  }
  return {};
}

}  // namespace

Status Optimise(Context& context) {
  for (const auto& f : context.module.functions) FUSEBOX_TRY(Optimise(context, *f).At("function " + f->name));
  return {};
}

}  // namespace fusebox::converter
