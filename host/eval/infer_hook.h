// SPDX-License-Identifier: Apache-2.0
// Type inference for a Rewriter: asks InferNode. What cannot be inferred yet stays open; a contradiction
// shows in the next type pass.
#pragma once

#include "host/eval/eval.h"
#include "host/graph/rewriter.h"

namespace fusebox {

// The registry and the module outlive the hook.
inline Rewriter::Infer InferWith(Registry& registry, const Module& module) {
  return [&](Function& f, Node& node) { (void)InferNode(registry, module, f, node); };
}

}  // namespace fusebox
