// SPDX-License-Identifier: Apache-2.0
// Bias and activation go into the op before them; ops that change nothing go.
#include <algorithm>
#include <cstring>
#include <set>

#include "converter/passes/pass.h"

namespace fusebox::converter {
namespace {

bool TakesBias(Op op) { return op == Op::kFullyConnected || op == Op::kConv2D || op == Op::kDepthwiseConv2D; }
bool TakesActivation(Op op) {
  return TakesBias(op) || op == Op::kAdd || op == Op::kSub || op == Op::kMul || op == Op::kDiv;
}

const char* ActivationName(Op op) {
  switch (op) {
    case Op::kRelu: return "RELU";
    case Op::kRelu6: return "RELU6";
    case Op::kReluN1To1: return "RELU_N1_TO_1";
    default: return nullptr;
  }
}

class Optimiser {
 public:
  Optimiser(Context& context, Function& f) : context_(context), f_(f) {}

  void Run() {
    while (Sweep()) {
      f_.Sweep();
      RemoveDead(f_);
    }
  }

 private:
  // One change per value at most: uses are read once per sweep.
  bool Sweep() {
    const Uses uses(f_);
    std::set<const Node*> touched;
    bool changed = false;
    for (auto& node : f_.nodes) {
      if (!node || node->results.empty()) continue;
      Node* before = Producer(uses, *node);
      if (touched.contains(node.get()) || (before && touched.contains(before))) continue;
      if (Neutral(*node) || MergeActivation(uses, *node, before) || MergeBias(uses, *node, before)) {
        touched.insert(node.get());
        if (before) touched.insert(before);
        removed_.insert(node.get());
        changed = true;
      }
    }
    for (auto& node : f_.nodes)
      if (node && removed_.contains(node.get())) node.reset();
    removed_.clear();
    return changed;
  }

  Node* Producer(const Uses& uses, const Node& node) const {
    for (ValueId v : node.operands)
      if (v != kNoValue && !f_.value(v).is_const()) return uses.producer(v);
    return nullptr;
  }

  void Say(const Node& node, const std::string& text) {
    std::string line = "function " + f_.name + ": " +
                       (node.location.name.empty() ? std::string(Name(node.op)) : node.location.name) + ": " +
                       text;
    if (said_.insert(line).second) context_.Note(std::move(line));
  }

  bool OneReader(const Uses& uses, const Node& before, const Node& node, const char* what) {
    const size_t readers = uses.readers(before.results[0]).size();
    if (readers == 1) return true;
    Say(node, std::string(what) + " is not merged into " + std::string(Name(before.op)) +
                  ": its operand has " + std::to_string(readers) + " readers");
    return false;
  }

  bool MergeActivation(const Uses& uses, Node& node, Node* before) {
    const char* name = ActivationName(node.op);
    if (!name || !before || !TakesActivation(before->op) || before->results.size() != 1) return false;
    if (before->attrs.str("fused_activation_function", "NONE") != "NONE" ||
        !OneReader(uses, *before, node, name))
      return false;
    before->attrs.Set("fused_activation_function", name);
    f_.ReplaceUses(node.results[0], before->results[0]);
    return true;
  }

  bool MergeBias(const Uses& uses, Node& node, Node* before) {
    if (!node.is(Op::kAdd) || !before || !TakesBias(before->op)) return false;
    const bool second = node.operands[1] != before->results[0];
    const ValueId constant = node.operands[second ? 1 : 0];
    if (!f_.value(constant).is_const() || f_.value(constant).type.dtype != DType::kF32) return false;
    if (before->attrs.str("fused_activation_function", "NONE") != "NONE") return false;
    const size_t channel = before->is(Op::kDepthwiseConv2D) ? 3 : 0;
    const Shape& weights = f_.value(before->operands[1]).type.shape;
    if (weights.rank() <= static_cast<int>(channel)) return false;
    const int64_t channels = weights[channel];
    const Shape& shape = f_.value(constant).type.shape;
    for (int d = 0; d + 1 < shape.rank(); ++d) {
      if (shape[static_cast<size_t>(d)] == 1) continue;
      Say(node, "the bias is not merged into " + std::string(Name(before->op)) +
                    ": it varies over dimension " + std::to_string(d));
      return false;
    }
    if (shape.rank() < 1 || shape[static_cast<size_t>(shape.rank() - 1)] != channels) return false;
    if (shape.rank() > f_.value(before->results[0]).type.shape.rank()) return false;
    if (!OneReader(uses, *before, node, "the bias")) return false;
    const ValueId old = before->operands.size() > 2 ? before->operands[2] : kNoValue;
    if (old != kNoValue && !f_.value(old).is_const()) return false;
    before->operands.resize(3);
    before->operands[2] = Sum(old, constant, channels);
    if (const std::string activation = node.attrs.str("fused_activation_function", "NONE");
        activation != "NONE") {
      before->attrs.Set("fused_activation_function", activation);
    }
    f_.ReplaceUses(node.results[0], before->results[0]);
    return true;
  }

  ValueId Sum(ValueId a, ValueId b, int64_t channels) {
    std::vector<float> sum(static_cast<size_t>(channels), 0.0f);
    for (ValueId v : {a, b}) {
      if (v == kNoValue) continue;
      const auto values = f_.value(v).data.As<float>();
      for (size_t i = 0; i < sum.size() && i < values.size(); ++i) sum[i] += values[i];
    }
    return f_.AddConst(DType::kF32, Shape{channels}, std::move(sum), f_.value(b).name);
  }

  // x * 1, a reshape or broadcast to the shape it has, a transpose that moves nothing.
  bool Neutral(Node& node) {
    const bool candidate =
        node.is(Op::kMul) || node.is(Op::kReshape) || node.is(Op::kTranspose) || node.is(Op::kBroadcastTo);
    if (!candidate || node.attrs.str("fused_activation_function", "NONE") != "NONE") return false;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (node.is(Op::kMul) ? IsOnes(node.operands[1 - i]) : i == 0) {
        const Type& from = f_.value(node.operands[i]).type;
        const Type& to = f_.value(node.results[0]).type;
        const bool moves = node.is(Op::kTranspose) && !IsIdentityPermutation(node.operands[1]);
        const bool same =
            node.is(Op::kTranspose) ? from.dtype == to.dtype : from == to && to.shape.is_static();
        if (moves || !same || f_.value(node.operands[i]).is_const()) continue;
        f_.ReplaceUses(node.results[0], node.operands[i]);
        return true;
      }
    }
    return false;
  }

  bool IsOnes(ValueId v) const {
    const Value& value = f_.value(v);
    if (!value.is_const() || value.type.dtype != DType::kF32) return false;
    const auto values = value.data.As<float>();
    return std::all_of(values.begin(), values.end(), [](float x) { return x == 1.0f; });
  }

  bool IsIdentityPermutation(ValueId v) const {
    const Value& value = f_.value(v);
    if (!value.is_const() || value.type.dtype != DType::kI32) return false;
    const auto perm = value.data.As<int32_t>();
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] != static_cast<int32_t>(i)) return false;
    return true;
  }

  Context& context_;
  Function& f_;
  std::set<const Node*> removed_;
  std::set<std::string> said_;
};

}  // namespace

Status Optimise(Context& context) {
  for (const auto& f : context.module.functions) Optimiser(context, *f).Run();
  return {};
}

}  // namespace fusebox::converter
