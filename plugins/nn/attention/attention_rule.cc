// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugins/nn/attention/attention.h"
#include "plugins/nn/attention/shape.h"

namespace fusebox::nn {
namespace {

[[noreturn]] void DeclineBody(std::string why) { throw Reject{"BODY", std::move(why)}; }

// The mask that the body adds to the scores by itself, besides the mask operand.
struct OwnMask {
  bool causal = false;
  bool selects = false;
  std::vector<float> values;  // [positions, keys]; empty: none
};

class Body {
 public:
  Body(const Site& s, const Graph& graph)
      : graph_(graph), positions_(s.in(kQ).dim(1)), keys_(s.in(kK).dim(1)), heads_(s.in(kQ).dim(2)) {
    for (uint32_t i = 0; i < graph.node_count(); ++i) {
      const GraphNode node = graph.node(i);
      for (uint32_t r = 0; r < node.out_count(); ++r) producers_[node.out_id(r)] = i;
    }
  }

  // Follows the scores from the softmax back to the product of q and k.
  OwnMask Mask(bool has_operand) const {
    const GraphNode softmax = Softmax();
    RequireScores(softmax.in(0));
    OwnMask mask;
    for (fbx_value value = softmax.in_id(0);;) {
      const auto producer = producers_.find(value);
      if (producer == producers_.end()) DeclineBody("its scores are no product of q and k");
      const GraphNode node = graph_.node(producer->second);
      if (node.op() == "BATCH_MATMUL" || node.op() == "FULLY_CONNECTED") break;
      value = Before(node, has_operand, mask);
    }
    Classify(mask);
    return mask;
  }

 private:
  GraphNode Softmax() const {
    for (uint32_t i = 0; i < graph_.node_count(); ++i)
      if (graph_.node(i).op() == "SOFTMAX") return graph_.node(i);
    DeclineBody("it has no SOFTMAX");
  }

  // Operands of other sizes would have another layout than [batch, position, head, feature].
  void RequireScores(Tensor scores) const {
    if (scores.rank() < 1 || !MayBe(scores.dim(-1), keys_)) DeclineBody("its softmax is not over the keys");
    int64_t rows = 1;
    for (const int64_t d : scores.dims().first(scores.dims().size() - 1)) rows *= d;
    if (scores.is_static() && positions_ >= 0 && rows % (positions_ * heads_) != 0)
      DeclineBody("its softmax is not over one row per position and head");
  }

  // The operand of the node that holds the scores.
  fbx_value Before(const GraphNode& node, bool has_operand, OwnMask& mask) const {
    const std::string_view op = node.op();
    if (op == "RESHAPE" || op == "TANH") return node.in_id(0);
    if (op == "MUL" || op == "DIV") return node.in_id(IsConstant(node, 0) ? 1 : 0);
    if (op == "SELECT" || op == "SELECT_V2") {
      const uint32_t scores = IsConstant(node, 2) ? 1 : 2;
      RequireNoMask(has_operand, mask);
      mask.values = Selected(node, scores);
      mask.selects = true;
      return node.in_id(scores);
    }
    if (op != "ADD") DeclineBody("it changes the scores by " + std::string(op));
    for (const uint32_t i : {0u, 1u}) {
      if (IsConstant(node, i)) {
        RequireNoMask(has_operand, mask);
        mask.values = Constant(node.in(i));
        return node.in_id(1 - i);
      }
      if (has_operand && IsOperand(node.in_id(i), kMask)) return node.in_id(1 - i);
    }
    DeclineBody("it computes a mask");
  }

  static void RequireNoMask(bool has_operand, const OwnMask& mask) {
    if (has_operand || !mask.values.empty()) DeclineBody("it has several masks");
  }

  static bool IsConstant(const GraphNode& node, uint32_t i) {
    return node.in(i).is_const() && node.in(i).has_value();
  }

  bool IsOperand(fbx_value value, uint32_t operand) const {
    for (auto p = producers_.find(value); p != producers_.end(); p = producers_.find(value)) {
      const GraphNode node = graph_.node(p->second);
      if (node.op() != "RESHAPE" && node.op() != "BROADCAST_TO") return false;
      value = node.in_id(0);
    }
    return value == graph_.inputs()[operand];
  }

  void RequireMaskShape(Tensor t) const {
    if (positions_ < 0 || keys_ < 0 || t.count() != positions_ * keys_ || t.dim(-1) != keys_)
      DeclineBody("it has a constant mask that is not of one value per position and key");
  }

  std::vector<float> Constant(Tensor t) const {
    if (t.dtype() != FBX_F32) DeclineBody("it has a constant mask that is not f32");
    RequireMaskShape(t);
    return {t.values<const float>().begin(), t.values<const float>().end()};
  }

  // 0 where the scores are selected, else the constant instead of them.
  std::vector<float> Selected(const GraphNode& node, uint32_t scores) const {
    const Tensor condition = node.in(0);
    const Tensor other = node.in(3 - scores);
    if (!IsConstant(node, 0) || !IsConstant(node, 3 - scores) || condition.dtype() != FBX_BOOL ||
        other.dtype() != FBX_F32 || other.count() != 1 || !(other.data<const float>()[0] <= kHidden))
      DeclineBody("it computes a mask");
    RequireMaskShape(condition);
    std::vector<float> values;
    for (const bool first : condition.values<const bool>())
      values.push_back(first == (scores == 1) ? 0 : other.data<const float>()[0]);
    return values;
  }

  void Classify(OwnMask& mask) const {
    if (mask.values.empty()) return;
    for (int64_t t = 0, i = 0; t < positions_; ++t)
      for (int64_t key = 0; key < keys_; ++key, ++i) {
        const float value = mask.values[static_cast<size_t>(i)];
        if (key <= t ? value != 0 : !(value <= kHidden)) return;
      }
    mask.causal = true;
    mask.values.clear();
  }

  // Scores this low are 0 after the softmax.
  static constexpr float kHidden = -1e9f;

  const Graph& graph_;
  int64_t positions_, keys_, heads_;
  std::map<fbx_value, uint32_t> producers_;  // node by result
};

OwnMask OwnMaskOf(const Site& s) {
  const bool has_operand = s.in_count() > kMask;
  if (const auto body = s.body()) return Body(s, *body).Mask(has_operand);
  return {};
}

}  // namespace

void AttentionRule::match(const Site& s) {
  RequireAttention(s);
  OwnMaskOf(s);
}

void AttentionRule::rewrite(const Site& s, Build& b) {
  const OwnMask mask = OwnMaskOf(s);
  std::vector<Value> operands;
  for (uint32_t i = 0; i < s.in_count(); ++i) operands.push_back(b.in(i));
  if (!mask.values.empty()) {
    const int64_t dims[] = {s.in(kQ).dim(1), s.in(kK).dim(1)};
    operands.push_back(b.constant<float>(mask.values, dims));
  }
  auto op = b.custom(Attention::custom, operands);
  op.attr("scale", s.attrs().f64("scale", 1 / std::sqrt(static_cast<double>(s.in(kQ).dim(3)))));
  op.attr("causal", mask.causal).attr("selects", mask.causal && mask.selects);
  if (const auto cap = s.attrs().find_f64("logit_cap")) op.attr("logit_cap", *cap);
  b.result(0, op[0]);
}

}  // namespace fusebox::nn
