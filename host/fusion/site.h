// SPDX-License-Identifier: Apache-2.0
// Steps that apply a replacement at its site.
#pragma once

#include <string>
#include <vector>

#include "host/fusion/fusion.h"

namespace fusebox {

// Sets absent options of an emitted custom op to the defaults of its options_schema, and checks the options
// of any op.
Status CompleteOptions(Registry&, Node&);
// Checks that each op of a replacement has a kernel for its types. `kernels_elsewhere`: custom ops without
// any kernel here are accepted too.
Status CheckKernels(Registry&, const Function& replacement, bool kernels_elsewhere);
// Checks that variables start as zero, as a .tflite file stores them.
Status CheckVariables(const Function& replacement);
// Adds an input for each operand of the composite. Returns the values that stand for the operands: the
// inputs, constants for operands that are constant at the site, kNoValue for absent ones.
std::vector<ValueId> AddOperands(Function& replacement, const Function& caller, const Node& composite);
// Makes inputs of the body whose operands are constant at the site constants.
void BindConstants(Function& body, const Function& caller, const Node& composite);
// Infers the results of the last node. If it is pure and its operands are constant, its results become
// constants and it is removed.
Status InferAndFold(Registry&, Module&, Function&);
std::vector<Tensor> ConstantsOf(const Function& caller, const Node& composite);
std::vector<bool> UsedResults(const Function& caller, const Node& composite);
// Sets the provenance of the rule, and the location of the composite, on every op of the replacement that
// computes (does not just move data).
void Stamp(Function& replacement, const Node& composite, const RuleReport& rule);
// Keeps the composite's body with the single node of the replacement, if the options request it and the body
// can run on the node's operands and results. Otherwise appends the reason to `notes`.
void KeepBody(Module& module, const Function& caller, const Node& composite, Function& replacement,
              FusionOptions::KeepBodies keep, std::vector<std::string>& notes);

}  // namespace fusebox
