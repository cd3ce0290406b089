// SPDX-License-Identifier: Apache-2.0
// The pieces of applying a replacement at its site.
#pragma once

#include <string>
#include <vector>

#include "host/fusion/fusion.h"

namespace fusebox {

// Whether an op that a rule emits can hold its attributes: the options of a builtin, and the schema that a
// manifest states for it.
Status CheckEmitted(Registry&, const Node&);
// Whether each op of a replacement has a kernel that takes its types. `kernels_elsewhere`: also a custom op
// that no plugin here has a kernel for passes.
Status CheckKernels(Registry&, const Function& replacement, bool kernels_elsewhere);
// Operands that are constant at the site become constants of the replacement, so that it can be folded.
void BindConstants(Function& replacement, const Function& caller, const Node& composite);
std::vector<Tensor> ConstantsOf(const Function& caller, const Node& composite);
std::vector<bool> UsedResults(const Function& caller, const Node& composite);
// Every op of the replacement that computes (and does not just move data) gets the provenance of the rule,
// and the composite's location.
void Stamp(Function& replacement, const Node& composite, const RuleReport& rule);
// Keeps the composite's body behind the replacement's only node, when the options ask for it and the node's
// operands and results are enough to run it; otherwise `notes` learns why not.
void KeepBody(Module& module, const Function& caller, const Node& composite, Function& replacement,
              FusionOptions::KeepBodies keep, std::vector<std::string>& notes);

}  // namespace fusebox
