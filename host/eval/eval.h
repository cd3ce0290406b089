// SPDX-License-Identifier: Apache-2.0
// What a node computes, asked of its kernel outside any session: result types, and values on constants.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "host/graph/graph.h"
#include "host/plugin/plugin.h"

namespace fusebox {

// The kernel that will run the node: the first of Registry::KernelsFor whose supports() accepts. Error: none does,
// with every candidate's reason, who promises the op, and (for a custom op) where plugins were searched.
// Host ops (control flow, variables) have no kernel: IsHostOp.
Result<KernelRef> ChooseKernel(Registry&, const Function&, const Node&);
bool IsHostOp(Op);

// Result types of one node from its operand types; host ops from their functions. Where the kernel knows less than
// the graph already says (a declared result type), the more precise of the two is kept; a contradiction is an error.
Status InferNode(Registry&, const Module&, Function&, const Node&);
// All nodes in order, into called functions too (their input types become the call's, when all calls agree).
// Nodes with no kernel keep their declared types. `changed` (may be null) tells whether any type got better.
Status InferTypes(Registry&, Module&, Function&, bool* changed = nullptr);

// The node's results on these operands (absent ones: empty Tensor). Pure nodes only; errors as the kernel gives them.
Result<std::vector<Tensor>> Evaluate(Registry&, const Function&, const Node&, std::span<const Tensor> operands);

struct FoldOptions {
  int64_t max_growth = 1 << 20;  // bytes a folded result may be larger than the operands it replaces
};
// Replaces pure nodes whose operands are all constant by their values, also SHAPE/RANK of a known shape; drops dead
// pure nodes; frees intermediates as it goes. Returns how many nodes went away.
Result<int> Fold(Registry&, Module&, Function&, const FoldOptions& = {});
// Removes pure nodes whose results nobody reads, and with them what only they read.
int RemoveDead(Function&);

}  // namespace fusebox
