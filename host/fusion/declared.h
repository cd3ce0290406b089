// SPDX-License-Identifier: Apache-2.0
// Rules declared in a manifest: they replace a composite by one op, without plugin code.
#pragma once

#include <memory>

#include "host/fusion/fusion.h"

namespace fusebox {

// Builds the replacement as the one function of a module: the op, and a TRANSPOSE for each transposed
// operand. The op's kernel infers the result types; a custom op without kernel has the composite's types.
// Returns null if the rule does not apply or failed; `report` has outcome and reasons. Otherwise the outcome
// is kFused.
std::unique_ptr<Module> RewriteAsDeclared(const ManifestRule& rule, Registry& registry,
                                          const Function& caller, const Node& composite, RuleReport& report);

}  // namespace fusebox
