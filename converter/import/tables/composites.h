// SPDX-License-Identifier: Apache-2.0
// Internal composites: source ops that have no builtin, but are part of patterns that have one (erf of GELU).
// They stay composites with a body until "optimize" has matched its patterns; the rest is lowered, whatever
// `--composites` is. Reports do not list them unless a plugin has a rule for one.
#pragma once

#include <string_view>

#include "host/graph/graph.h"

namespace fusebox::converter {

inline constexpr std::string_view kErf = "fusebox.erf";

inline bool IsInternal(const Node& node) {
  return node.is(Op::kStablehloComposite) && node.name == kErf && !node.body.empty() &&
         node.operands.size() == 1 && node.results.size() == 1;
}
inline bool IsPure(const Node& node) { return Info(node.op).effects == Effects::kPure || IsInternal(node); }

// Replaces internal composites by their bodies: all, or the composites that folding then removes, because
// their operands are constants or their results are not used. Returns how many.
enum class Lowered { kAll, kFoldable };
int LowerComposites(const Module&, Function&, Lowered);

}  // namespace fusebox::converter
