// SPDX-License-Identifier: Apache-2.0
#include "converter/recognize/recognize.h"

#include <algorithm>

#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

bool HasLoops(const Module& module) {
  return std::ranges::any_of(module.functions, [](const auto& f) {
    return std::ranges::any_of(f->nodes, [](const auto& node) { return node->is(Op::kWhile); });
  });
}

}  // namespace

Status RecognizeComposites(Context& context) {
  const bool fuses = context.options.composites != Composites::kInline;
  if (fuses && HasLoops(context.module)) {
    // Weights that loops carry unchanged become constants of their bodies, where slices of them fold.
    FUSEBOX_TRY(SimplifyLoops(context));
    FUSEBOX_TRY(FoldToFixpoint(context));
  }
  return recognize::Run(context.module, context.registry, {.fuses = fuses}, context.report.notes);
}

}  // namespace fusebox::converter
