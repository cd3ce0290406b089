// SPDX-License-Identifier: Apache-2.0
#include "converter/quantize/ops8.h"

namespace fusebox::converter::quantize {
namespace {

OpQuantization BuiltinRoles(const OpInfo& info, bool rows) {
  const int axis = Has(info.op, kOneScale) && !rows ? -1 : info.channel_axis;
  const OperandList& in = info.operands;
  OpQuantization roles{.asymmetric_inputs = Has(info.op, kAsymmetricInputs)};
  for (size_t i = 0; i < 64; ++i)
    if (in.weights >> i & 1) roles.weights.push_back({i, axis});
  if (in.bias >= 0 && !roles.weights.empty())
    roles.biases = {{static_cast<size_t>(in.bias), static_cast<size_t>(in.data), roles.weights[0].operand}};
  return roles;
}

}  // namespace

std::optional<OpQuantization> RolesOf(Registry& registry, const Node& node, bool rows) {
  if (!node.is(Op::kCustom)) return BuiltinRoles(Info(node.op), rows);
  for (const KernelRef& kernel : registry.KernelsOf(FBX_OP_CUSTOM, node.name)) {
    if (!kernel.Supports(node.version)) continue;
    for (const ManifestOp& op : kernel.plugin->info().manifest.ops) {
      const bool fits = op.version == 0 || node.version == 0 || op.version == node.version;
      if (op.name == node.name && fits && op.quantization) return op.quantization;
    }
  }
  return std::nullopt;
}

ValueId LeadOf(const Function& f, const Node& node, const OpQuantization::SameScale& group) {
  const auto computed = [&](ValueId v) {
    return v != kNoValue && !f.value(v).is_const() && f.value(v).type.dtype == DType::kF32;
  };
  for (const size_t i : group.results)
    if (i < node.results.size() && computed(node.results[i])) return node.results[i];
  for (const size_t i : group.operands)
    if (computed(OperandOf(node, i))) return node.operands[i];
  return kNoValue;
}

std::string WhyNoAxis(const Value& weights, int axis) {
  const int rank = weights.type.shape.rank();
  if (axis < rank) return "";
  return "they have " + std::to_string(rank) + " dimensions and their scales are along axis " +
         std::to_string(axis);
}

}  // namespace fusebox::converter::quantize
