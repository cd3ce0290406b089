// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/partition/network.h"

namespace fusebox::xnnpack {

bool IsUnpacked(Tensor stored) {
  if (!stored.is_const() || !stored.has_value()) return false;
  if (stored.dtype() == FBX_F16) return true;
  const fbx_quant* q = stored.quant();
  return stored.dtype() == FBX_I8 && q != nullptr && q->count > 0 && q->kind != FBX_QUANT_BLOCKWISE;
}

Network::Network(const Graph& graph, bool claiming)
    : graph_(graph), claiming_(claiming), producer_(graph.value_count(), UINT32_MAX) {
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    const GraphNode node = graph.node(i);
    for (uint32_t k = 0; k < node.out_count(); ++k)
      if (const fbx_value id = node.out_id(k); id < producer_.size()) producer_[id] = i;
  }
}

std::optional<Tensor> Network::Constant(fbx_value id) const {
  if (id >= producer_.size()) return std::nullopt;
  const Tensor value = graph_.value(id);
  if (value.is_const() && value.has_value()) return value;
  const uint32_t index = producer_[id];
  if (index == UINT32_MAX) return std::nullopt;
  const GraphNode node = graph_.node(index);
  if (node.op() != "DEQUANTIZE" || node.in_count() != 1) return std::nullopt;
  const Tensor stored = node.in(0);
  return IsUnpacked(stored) ? std::optional(stored) : std::nullopt;
}

}  // namespace fusebox::xnnpack
