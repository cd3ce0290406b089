// SPDX-License-Identifier: Apache-2.0
// REVERSE_V2 of several axes becomes one node per axis: stock TFLite reads the first axis only and reports no
// error.
#include "converter/passes/pass.h"
#include "converter/passes/rewrite.h"

namespace fusebox::converter {

Status SplitReverses(Context& context) {
  for (const auto& f : context.module.functions) {
    FUSEBOX_TRY(RewriteNodes(context.module, *f, context.registry, [&](Translation& t) -> Result<bool> {
      if (!t.node().is(Op::kReverseV2) || t.count() != 2) return false;
      const auto axes = ConstInts(*f, t.in(1));
      if (!axes || axes->size() < 2) return false;
      const ValueId result = t.node().results[0];
      ValueId x = t.in(0);
      for (const int64_t axis : *axes) {
        x = t.Typed(Op::kReverseV2, {x, t.I32({axis})}, f->value(result).type);
        f->value(x).quant = f->value(result).quant;
      }
      t.SetResult(0, x);
      return true;
    }));
  }
  return {};
}

}  // namespace fusebox::converter
