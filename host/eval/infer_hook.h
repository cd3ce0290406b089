// SPDX-License-Identifier: Apache-2.0
// Type inference for a Rewriter: calls InferNode. What cannot be inferred yet stays open; a contradiction
// shows in the next type pass.
#pragma once

#include "host/eval/eval.h"
#include "host/graph/rewriter.h"

namespace fusebox {

// As InferNode, without the node's place in errors: finding it takes time that grows with the function.
Status TryInferNode(Registry&, const Module&, Function&, const Node&);

// The registry and the module outlive the hook.
inline Rewriter::Infer InferWith(Registry& registry, const Module& module) {
  return [&](Function& f, Node& node) { (void)TryInferNode(registry, module, f, node); };
}

}  // namespace fusebox
