// SPDX-License-Identifier: Apache-2.0
// Ops that move elements (TRANSPOSE, RESHAPE, SLICE, PAD, ...): the scales that the elements keep, and
// elements of 4 bits, which kernels move as i8.
#pragma once

#include <span>
#include <vector>

#include "host/eval/eval.h"

namespace fusebox {

bool MovesElements(Op);

// Sets the quantization of the node's results where a data operand has one and a result has none: per tensor,
// per channel along the axis that the channels move to, or per block. The node's kernel finds it: it moves
// the numbers of the scales. No effect on other nodes. Error: scales of a result follow neither an axis nor
// whole blocks.
Status MoveQuant(Registry&, Function&, const Node&);

// Returns whether a node moves elements that no kernel supports as they are: elements of 4 bits, or with a
// scale per channel or block. They are moved as plain i8, and MoveQuant sets their scales.
bool MovesUnscaled(const Function&, const Node&);
// Result types of such a node, and its results on constant operands.
Result<std::vector<Type>> InferUnscaled(Registry&, const Function&, const Node&);
Result<std::vector<Tensor>> EvaluateUnscaled(Registry&, HostCalls&, const Function&, const Node&,
                                             std::span<const Tensor> operands);

}  // namespace fusebox
