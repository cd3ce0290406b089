// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>
#include <vector>

#include "plugins/nn/attention/attention.h"
#include "plugins/nn/attention/scores.h"
#include "plugins/nn/attention/shape.h"

namespace fusebox::nn {
namespace {

Masking MaskingOf(const Site& s) {
  const auto graph = s.body();
  if (!graph) return {};
  const Body body(*graph);
  return ScoreReader(s, body, {}, s.in_count() > kMask).Read();
}

// Constant masks become an operand.
void AddMask(const Site& s, Build& b, const Layout& layout, const Masking& masking,
             std::vector<Value>& operands) {
  if (masking.values.empty()) return;
  const int64_t dims[] = {s.in(kQ).dim(layout.positions(kQ)), s.in(kK).dim(layout.positions(kK))};
  operands.push_back(b.constant<float>(masking.values, dims));
}

// The layout, by the dimension of the keys in k and v.
Layout TransposedLayout(const Site& s) {
  s.require(s.attrs().i64("k_ts_idx", 2) == 2, "ATTR", "is not 2", "attr k_ts_idx");
  const int64_t keys = s.attrs().i64("v_ts_idx", 3);
  s.require(keys == 2 || keys == 3, "ATTR", "is neither 2 nor 3", "attr v_ts_idx");
  return {.heads_first = true, .transposed_values = keys == 3};
}

// Operand 3 is the mask unless it has runtime parameters, which are i32.
bool HasMask(const Site& s) { return s.in_count() > kMask && s.in(kMask).dtype() != FBX_I32; }

Masking TransposedMaskingOf(const Site& s, const Layout& layout) {
  const Body body = BodyOf(s);
  ScoreReader reader(s, body, layout, HasMask(s));
  Masking masking = reader.Read();
  reader.RequireProducts();
  return masking;
}

}  // namespace

void AttentionRule::match(const Site& s) {
  RequireAttention(s, {});
  MaskingOf(s);
}

void AttentionRule::rewrite(const Site& s, Build& b) {
  const Masking masking = MaskingOf(s);
  std::vector<Value> operands;
  for (uint32_t i = 0; i < s.in_count(); ++i) operands.push_back(b.in(i));
  AddMask(s, b, {}, masking, operands);
  auto op = b.custom(Attention::custom, operands);
  op.attr("scale", s.attrs().f64("scale", 1 / std::sqrt(static_cast<double>(s.in(kQ).dim(3)))));
  op.attr("causal", masking.causal).attr("selects", masking.causal && masking.selects);
  if (const auto cap = s.attrs().find_f64("logit_cap")) op.attr("logit_cap", *cap);
  b.result(0, op[0]);
}

void TransposedAttentionRule::match(const Site& s) {
  const bool has_mask = HasMask(s);
  const uint32_t parameters = has_mask ? kMask + 1 : kMask;
  s.require(s.in_count() >= kMask && s.in_count() <= parameters + 1 && s.out_count() == 1, "ARITY",
            "needs q, k, v, maybe a mask and maybe parameters, and 1 result");
  if (s.in_count() > parameters) s.operand(parameters, FBX_I32);
  const Layout layout = TransposedLayout(s);
  RequireHeads(s, layout);
  if (has_mask) {
    s.require(s.in(kMask).dtype() == FBX_BOOL || s.in(kMask).dtype() == FBX_F32, "DTYPE",
              "is neither bool nor f32", "operand 3");
    RequireMask(s, layout);
  }
  TransposedMaskingOf(s, layout);
}

void TransposedAttentionRule::rewrite(const Site& s, Build& b) {
  const Layout layout = TransposedLayout(s);
  const Masking masking = TransposedMaskingOf(s, layout);
  std::vector<Value> operands = {b.in(kQ), b.in(kK), b.in(kV)};
  if (HasMask(s)) operands.push_back(b.in(kMask));
  AddMask(s, b, layout, masking, operands);
  auto op = b.custom(Attention::custom, operands);
  op.attr("scale", 1.0).attr("causal", masking.causal).attr("selects", masking.causal && masking.selects);
  op.attr("heads_first", true).attr("transposed_values", layout.transposed_values);
  if (masking.fill) op.attr("hidden", static_cast<double>(*masking.fill));
  if (const auto cap = s.attrs().find_f64("softcap")) op.attr("logit_cap", *cap);
  b.result(0, op[0]);
}

}  // namespace fusebox::nn
