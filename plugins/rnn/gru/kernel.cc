// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/kernel.h"

#include "plugins/rnn/gru/engines.h"

namespace fusebox::rnn {

std::unique_ptr<const GruEngine> MakeEngine(const GruSpec& spec, const Node& node) {
  if (spec.hybrid) return MakeHybridGru(spec, node);
  if (spec.integer) return MakeIntegerGru(spec, node);
  if (spec.dtype == FBX_F32 && spec.constant_weights) return MakePackedGru(spec, node);
  return MakeReferenceGru(spec);
}

void GruKernel::supports(const Node& node) {
  const GruSpec spec(node);
  RequireCount(node.out_count(), 2, "results");
  if (spec.integer) CheckIntegerGru(spec, node);
}

void GruKernel::infer(const Node& node, Infer& out) {
  const auto spec = ParseSpec<GruSpec>(node);
  SetSequence(out, 0, spec, spec.cells);
  out.set(1, spec.dtype, {spec.batch, spec.cells});
}

}  // namespace fusebox::rnn
