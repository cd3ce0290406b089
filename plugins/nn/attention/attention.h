// SPDX-License-Identifier: Apache-2.0
// odml.scaled_dot_product_attention and odml.sdpa_transposed (LiteRT, litert-torch): softmax(scale * q k^T +
// mask) v, for each head.
//
// Operands: q f32 [B,T,N,H]; k [B,S,K,H] and v [B,S,K,V], both f32, f16, or i8 with one scale; optionally an
// additive mask, f32, broadcast to [B,N,T,S]. N is a multiple of K: neighboring heads of q share a head of k
// and v. Result: f32 [B,T,N,V]. Attributes: scale (1 / sqrt(H)); logit_cap: scores become cap * tanh(score /
// cap); causal: position t sees the keys 0 to t only; selects: see AttentionBlock; hidden: a mask that is not
// 0 becomes the score, and keys whose mask is this or less have no weight beside a seen key (a mask may be
// bool then: false is this number); heads_first: q [B,N,T,H], k [B,K,S,H], v [B,K,S,V], result [B,N,T,V];
// transposed_values, with heads_first: v [B,K,V,S].
// The scores are never stored.
#pragma once

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

// The composite has no attribute for a causal mask or a constant one: the rule reads it from the body.
struct AttentionRule {
  static constexpr std::string_view id = "fusebox.attention";
  static constexpr std::string_view implements = "odml.scaled_dot_product_attention";
  static void match(const Site& s);
  static void rewrite(const Site& s, Build& b);
};

// Operands: q f32 [B,N,T,H], scaled; k [B,K,S,H]; v [B,K,V,S], or [B,K,S,V] if v_ts_idx is 2; optionally a
// mask, f32 to add or bool (false hides a key); optionally runtime parameters i32, which the body ignores:
// the mask hides keys that are not in use yet.
struct TransposedAttentionRule {
  static constexpr std::string_view id = "fusebox.attention_transposed";
  static constexpr std::string_view implements = "odml.sdpa_transposed";
  static void match(const Site& s);
  static void rewrite(const Site& s, Build& b);
};

class Attention {
 public:
  static constexpr std::string_view custom = "fusebox.attention";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out);
  explicit Attention(const Node& n);
  uint32_t prepare(const Node& n, Plan& plan) const;  // the slot of the scratch memory
  void invoke(const Node& n, uint32_t slot) const;

 private:
  float scale_, cap_, hidden_;
  bool replaces_, causal_, selects_, heads_first_, transposed_values_;
};

}  // namespace fusebox::nn
