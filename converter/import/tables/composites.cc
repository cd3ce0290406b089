// SPDX-License-Identifier: Apache-2.0
#include "converter/import/tables/composites.h"

namespace fusebox::converter {
namespace {

bool IsFoldable(const Function& f, const Node& node) {
  const ValueId x = node.operands[0];
  const ValueId y = node.results[0];
  return (x != kNoValue && f.value(x).is_const()) || y == kNoValue || Uses(f).readers(y).empty();
}

}  // namespace

int LowerComposites(const Module& module, Function& f, Lowered which) {
  int lowered = 0;
  for (size_t i = 0; i < f.nodes.size(); ++i) {
    const Node& node = *f.nodes[i];
    if (!IsInternal(node) || (which == Lowered::kFoldable && !IsFoldable(f, node))) continue;
    const ValueId first = f.value_count();
    InlineAt(f, i, *module.Find(node.body));
    for (ValueId v = first; v < f.value_count(); ++v)
      if (f.value(v).is_const()) f.value(v).name.clear();  // numbers of the definition have no names
    ++lowered;
  }
  return lowered;
}

}  // namespace fusebox::converter
