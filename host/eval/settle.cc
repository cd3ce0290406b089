// SPDX-License-Identifier: Apache-2.0
#include "host/eval/settle.h"

#include <utility>

namespace fusebox {

Settled Settle(Registry& registry, HostCalls& calls, const Function& function) {
  Settled settled;
  settled.refused.resize(function.nodes.size());
  const Function* known = &function;
  NodeView view;
  std::vector<Type> types;
  for (size_t i = 0; i < function.nodes.size(); ++i) {
    const Node& node = *known->nodes[i];
    if (Has(node.op, kHost)) continue;
    view.Show(*known, node);
    const auto kernel = ChooseKernel(registry, *known, node, view);
    if (!kernel) continue;
    HostCall& call = calls.For(*kernel->plugin);
    Inference inference(ProperResults(node), types);
    Status inferred = CallInfer(*kernel->kernel, call, *view.abi(), inference);
    call.TakeDiags();
    if (!inferred) {
      settled.refused[i] = std::move(inferred).error().message;
      continue;
    }
    for (size_t r = 0; r < types.size(); ++r) {
      const ValueId id = node.results[r];
      if (id == kNoValue || Refine(types[r], known->value(id).type)) continue;
      if (settled.function == nullptr) settled.function = Clone(function, function.name);
      settled.function->value(id).type.shape = types[r].shape;
      known = settled.function.get();
    }
  }
  return settled;
}

}  // namespace fusebox
