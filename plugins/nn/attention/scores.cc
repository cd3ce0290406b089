// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/attention/scores.h"

#include <string>

namespace fusebox::nn {
namespace {

// Scores this low are 0 after the softmax.
constexpr float kHidden = -1e9f;

bool IsConstant(const GraphNode& node, uint32_t i) { return node.in(i).is_const() && node.in(i).has_value(); }

}  // namespace

ScoreReader::ScoreReader(const Site& s, const Body& body, const Layout& layout, bool has_mask)
    : body_(body),
      positions_(s.in(kQ).dim(layout.positions(kQ))),
      keys_(s.in(kK).dim(layout.positions(kK))),
      heads_(s.in(kQ).dim(layout.heads())),
      layout_(layout),
      has_mask_(has_mask),
      expects_cap_(s.attrs().has("logit_cap") || s.attrs().has("softcap")) {}

Masking ScoreReader::Read() {
  const GraphNode softmax = Softmax();
  RequireScores(softmax.in(0));
  Masking masking;
  for (fbx_value value = softmax.in_id(0);;) {
    const auto node = body_.Producer(value);
    if (!node) DeclineBody("its scores are no product of q and k");
    if (node->op() == "BATCH_MATMUL" || node->op() == "FULLY_CONNECTED") {
      product_ = value;
      break;
    }
    value = Before(*node, masking);
  }
  if (has_mask_ && !used_mask_) DeclineBody("it does not use its mask");
  if (capped_ != expects_cap_) DeclineBody("it limits the scores otherwise than its attributes");
  Classify(masking);
  return masking;
}

GraphNode ScoreReader::Softmax() const {
  if (const auto softmax = body_.Find("SOFTMAX")) return *softmax;
  DeclineBody("it has no SOFTMAX");
}

// Operands of other sizes would have another layout.
void ScoreReader::RequireScores(Tensor scores) const {
  if (scores.rank() < 1 || !MayBe(scores.dim(-1), keys_)) DeclineBody("its softmax is not over the keys");
  int64_t rows = 1;
  for (const int64_t d : scores.dims().first(scores.dims().size() - 1)) rows *= d;
  if (scores.is_static() && positions_ > 0 && rows % (positions_ * heads_) != 0)
    DeclineBody("its softmax is not over one row per position and head");
}

// The operand of the node that holds the scores.
fbx_value ScoreReader::Before(const GraphNode& node, Masking& masking) {
  const std::string_view op = node.op();
  if (op == "TANH") capped_ = true;
  if (op == "RESHAPE" || op == "TANH") return node.in_id(0);
  if (op == "MUL" || op == "DIV") {
    scaled_ = true;
    return node.in_id(IsConstant(node, 0) ? 1 : 0);
  }
  if (op == "SELECT" || op == "SELECT_V2") return BeforeSelect(node, masking);
  if (op != "ADD") DeclineBody("it changes the scores by " + std::string(op));
  for (const uint32_t i : {0u, 1u}) {
    if (body_.IsZero(node.in_id(i))) return node.in_id(1 - i);
    if (IsConstant(node, i)) {
      RequireNoMask(masking);
      masking.values = Constant(node.in(i));
      return node.in_id(1 - i);
    }
    if (has_mask_ && node.in(i).dtype() == FBX_F32 && IsMask(node.in_id(i), false)) {
      if (used_mask_) DeclineBody("it has several masks");
      used_mask_ = true;
      return node.in_id(1 - i);
    }
  }
  DeclineBody("it computes a mask");
}

fbx_value ScoreReader::BeforeSelect(const GraphNode& node, Masking& masking) {
  const uint32_t scores = IsConstant(node, 2) ? 1 : 2;
  if (has_mask_ && scores == 1 && IsMask(node.in_id(0), true)) {
    const Tensor fill = node.in(2);
    if (used_mask_) DeclineBody("it has several masks");
    if (fill.dtype() != FBX_F32 || fill.count() != 1 || !(fill.data<const float>()[0] < 0))
      DeclineBody("its mask selects other values than one negative number");
    used_mask_ = true;
    masking.fill = fill.data<const float>()[0];
    return node.in_id(1);
  }
  RequireNoMask(masking);
  masking.values = Selected(node, scores);
  masking.selects = true;
  return node.in_id(scores);
}

void ScoreReader::RequireNoMask(const Masking& masking) const {
  if (has_mask_ || !masking.values.empty()) DeclineBody("it has several masks");
}

// As a condition, the mask may have been a number between. Heads that share keys may have copies of it.
bool ScoreReader::IsMask(fbx_value v, bool as_condition) const {
  while (v != body_.operand(kMask)) {
    const auto node = body_.Producer(v);
    if (!node) return false;
    const std::string_view op = node->op();
    if (op == "CONCATENATION") {
      for (uint32_t i = 1; i < node->in_count(); ++i)
        if (node->in_id(i) != node->in_id(0)) return false;
      if (node->in(0).rank() < 1 || node->in(0).dim(-1) != node->out(0).dim(-1)) return false;
    } else if (as_condition && op == "NOT_EQUAL") {
      if (!body_.IsZero(node->in_id(1))) return false;
    } else if (op != "RESHAPE" && op != "BROADCAST_TO" && !(as_condition && op == "CAST")) {
      return false;
    }
    v = node->in_id(0);
  }
  return true;
}

void ScoreReader::RequireMaskShape(Tensor t) const {
  if (positions_ < 0 || keys_ < 0 || t.count() != positions_ * keys_ || t.dim(-1) != keys_)
    DeclineBody("it has a constant mask that is not of one value per position and key");
}

std::vector<float> ScoreReader::Constant(Tensor t) const {
  if (t.dtype() != FBX_F32) DeclineBody("it has a constant mask that is not f32");
  RequireMaskShape(t);
  return {t.values<const float>().begin(), t.values<const float>().end()};
}

// 0 where the scores are selected, else the constant instead of them.
std::vector<float> ScoreReader::Selected(const GraphNode& node, uint32_t scores) const {
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

void ScoreReader::Classify(Masking& masking) const {
  if (masking.values.empty()) return;
  for (int64_t t = 0, i = 0; t < positions_; ++t)
    for (int64_t key = 0; key < keys_; ++key, ++i) {
      const float value = masking.values[static_cast<size_t>(i)];
      if (key <= t ? value != 0 : !(value <= kHidden)) return;
    }
  masking.causal = true;
  masking.values.clear();
}

void ScoreReader::RequireProducts() const {
  if (scaled_ && !capped_) DeclineBody("it scales the scores");
  const GraphNode scores = body_.Producer(product_, "BATCH_MATMUL", "its scores are no BATCH_MATMUL");
  RequireProduct(scores, kK, true);
  for (fbx_value v = scores.in_id(0); v != body_.operand(kQ);)
    v = body_.Producer(v, "RESHAPE", "it computes with another q than the operand").in_id(0);
  const fbx_value sum = body_.Origin(body_.WithoutZeros(body_.Origin(body_.result(0))));
  const GraphNode result = body_.Producer(sum, "BATCH_MATMUL", "its result is no BATCH_MATMUL");
  RequireProduct(result, kV, layout_.transposed_values);
  if (body_.Origin(result.in_id(0)) != Softmax().out_id(0))
    DeclineBody("its result is no product of a softmax");
}

// The second factor is the operand, maybe from bytes or halves; `transposed`: its features are multiplied.
void ScoreReader::RequireProduct(const GraphNode& node, uint32_t operand, bool transposed) const {
  fbx_value factor = node.in_id(1);
  std::vector<int> order = {0, 1, 2, 3};
  if (node.attrs().b("adj_y", false) != transposed) order = {0, 1, 3, 2};
  const fbx_value origin = body_.Origin(factor);
  const auto cast = body_.Producer(origin);
  const bool is_cast = cast && cast->op() == "DEQUANTIZE";
  if ((is_cast ? cast->in_id(0) : origin) != body_.operand(operand) || node.attrs().b("adj_x", false) ||
      !body_.IsTransposed(factor, origin, order))
    DeclineBody("it does not multiply by " + std::string(operand == kK ? "k" : "v") +
                " in the layout of its attributes");
}

}  // namespace fusebox::nn
