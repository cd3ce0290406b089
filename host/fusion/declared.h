// SPDX-License-Identifier: Apache-2.0
// Rules that a manifest declares: the composite becomes one op, with no code of the plugin's.
#pragma once

#include <memory>

#include "host/fusion/fusion.h"

namespace fusebox {

// A module whose one function is the replacement: the op, and a TRANSPOSE for each operand that is turned.
// The result types are what the op's kernel says; of a custom op without a kernel here, what the composite
// says. Null where it does not fit: report says why (outcome and reasons); else the outcome is kFused.
std::unique_ptr<Module> RewriteAsDeclared(const ManifestRule& rule, Registry& registry,
                                          const Function& caller, const Node& composite, RuleReport& report);

}  // namespace fusebox
