// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "converter/quantize/ops8.h"
#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

// Smaller weights save less than their scales or a DEQUANTIZE cost.
constexpr size_t kFewest = 256;
constexpr size_t kFewestDequantized = 1024;

// Returns whether kernels may run the op on f32 with 8-bit weights.
bool MayBeHybrid(const Node& node, const std::optional<OpQuantization>& roles) {
  return node.is(Op::kCustom) ? roles && !roles->weights.empty() : Has(node.op, kHybrid);
}

class DynamicQuantizer {
 public:
  DynamicQuantizer(Context& context, Function& f, bool rest)
      : context_(context), f_(f), r_(f), rest_(rest), outputs_(f.outputs.begin(), f.outputs.end()) {}

  void Run() {
    for (size_t at = 0; at < f_.nodes.size(); ++at) {
      Node& node = *f_.nodes[at];
      const auto roles = RolesOf(context_.registry, node);
      if (MayBeHybrid(node, roles)) Hybrid(node, *roles);
      else Others(at);
    }
    r_.Finish();
    RemoveDead(f_);
  }

 private:
  bool IsFloat(ValueId v) const {
    return v != kNoValue && f_.value(v).is_const() && f_.value(v).type.dtype == DType::kF32 &&
           !outputs_.contains(v);
  }

  // Returns the constant's i8 form, created once, or kNoValue if i8 cannot represent it.
  ValueId Bytes(ValueId v, int axis) {
    const auto known = made_.find({v, axis});
    if (known != made_.end()) return known->second;
    const auto quantized = SymmetricBytes(f_.value(v), axis);
    if (!quantized) return kNoValue;
    const ValueId bytes =
        f_.AddConst(Type{DType::kI8, f_.value(v).type.shape}, quantized->data, f_.value(v).name);
    f_.value(bytes).quant = quantized->quant;
    return made_[{v, axis}] = bytes;
  }

  // All weights of the op or none, because kernels require the same dtype.
  void Hybrid(Node& node, const OpQuantization& roles) {
    std::vector<OpQuantization::Weights> present;
    size_t elements = 0;
    for (const auto& weights : roles.weights) {
      const ValueId v = OperandOf(node, weights.operand);
      if (v == kNoValue) continue;
      if (!IsFloat(v)) return KeepOther(node, weights.operand);
      if (const std::string why = WhyNoAxis(f_.value(v), weights.axis); !why.empty()) return Keep(node, why);
      present.push_back(weights);
      elements += f_.value(v).data.size() / sizeof(float);
    }
    if (elements < kFewest) return Keep(node, "they have " + std::to_string(elements) + " elements");
    if (node.is(Op::kConv2D) && IsGrouped(node)) return Keep(node, "hybrid kernels do not support groups");
    const std::vector<ValueId> before = node.operands;
    const Attrs attrs = node.attrs;
    for (const auto& [i, axis] : present) {
      const ValueId bytes = Bytes(node.operands[i], axis);
      if (bytes == kNoValue) {
        node.operands = before;
        return Keep(node, "they are not finite");
      }
      node.operands[i] = bytes;
    }
    if (roles.asymmetric_inputs) node.attrs.Set("asymmetric_quantize_inputs", true);
    std::string why = Refusal(context_, f_, node);
    if (why.empty()) return;
    node.operands = before;
    node.attrs = attrs;
    Keep(node, why);
  }

  bool IsGrouped(const Node& node) const {
    const Shape& in = f_.value(node.operands[0]).type.shape;
    const Shape& w = f_.value(node.operands[1]).type.shape;
    return in.rank() == 4 && w.rank() == 4 && in[3] != w[3];
  }

  // Large constants of other ops: gathered tables stay i8, others are dequantized before use.
  void Others(size_t at) {
    Node& node = *f_.nodes[at];
    r_.SetLocation(node.location);
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId v = node.operands[i];
      if (!IsFloat(v) || f_.value(v).data.size() < kFewestDequantized * sizeof(float) ||
          !MayBeDequantized(node))
        continue;
      if (node.is(Op::kGather) && i == 0) {
        Gather(node, at);
        continue;
      }
      const ValueId bytes = Bytes(v, -1);
      if (bytes == kNoValue) continue;
      auto known = dequantized_.find(v);
      if (known == dequantized_.end()) {
        r_.InsertBefore(at);
        const ValueId restored = r_.Typed(Op::kDequantize, {bytes}, f_.value(v).type);
        f_.value(restored).name = f_.value(v).name;
        known = dequantized_.emplace(v, restored).first;
      }
      node.operands[i] = known->second;
      const std::string why = Refusal(context_, f_, node);
      if (why.empty()) continue;
      node.operands[i] = v;
      Keep(node, why);
    }
  }

  // Operands of custom ops keep the dtype their plugin chose, and so do states. With one scale, small
  // divisors or factors would become zero.
  bool MayBeDequantized(const Node& node) const {
    if (rest_ && Role(node) != Quantizes::kWeighted && Role(node) != Quantizes::kNone) return false;
    return HasWeights(node) && Info(node.op).effects == Effects::kPure && !node.is(Op::kCustom);
  }

  // GATHER of i8, and DEQUANTIZE of the result.
  void Gather(Node& node, size_t at) {
    const ValueId result = node.results[0];
    const ValueId bytes = Bytes(node.operands[0], -1);
    if (bytes == kNoValue) return;
    const Type type = f_.value(result).type;
    const ValueId gathered = f_.AddValue(Type{DType::kI8, type.shape}, f_.value(result).name + "/stored");
    f_.value(gathered).quant = f_.value(bytes).quant;
    node.operands[0] = bytes;
    node.results[0] = gathered;
    r_.InsertBefore(at + 1);
    r_.EmitTyped(Op::kDequantize, {gathered}, {}).results = {result};
  }

  void KeepOther(const Node& node, size_t operand) {
    const Value& value = f_.value(node.operands[operand]);
    if (!value.is_const()) return Keep(node, "operand " + std::to_string(operand) + " is not constant");
    if (value.type.dtype == DType::kF32) return Keep(node, "they are an output");
    if (!rest_)
      context_.Note(Place(node) + ": its weights are " + std::string(ToString(value.type.dtype)) +
                    " already");
  }
  void Keep(const Node& node, const std::string& why) {
    context_.Note(Place(node) + ": its weights stay f32: " + why);
  }

  Context& context_;
  Function& f_;
  Rewriter r_;
  const bool rest_;
  std::set<ValueId> outputs_;
  std::map<std::pair<ValueId, int>, ValueId> made_;
  std::map<ValueId, ValueId> dequantized_;
};

}  // namespace

void ToDynamic(Context& context, Function& f, bool rest) { DynamicQuantizer(context, f, rest).Run(); }

}  // namespace fusebox::converter::quantize
