// SPDX-License-Identifier: Apache-2.0
// Updates of KV caches with a position per row, as LiteRT's custom op odml.update_external_kv_cache: the row
// i of an update becomes the row positions[i] of the cache. The first position that is smaller than the
// one before, or negative, ends the update: what follows is padding.
//
// Operands of fusebox.update_rows: cache [B, S, ...] and rows [B, T, ...], f32 or f16; positions i32 or i64
// [T], below S. Result: the cache, updated in place where the plan permits.
#pragma once

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

// LiteRT's converter writes the composite as a custom op without a body. Operands: the caches of k and v
// [1, S, N, H], positions [T], k and v of the new tokens [1, T, N, H].
struct ExternalCacheRule {
  static constexpr std::string_view id = "fusebox.external_cache";
  static constexpr std::string_view implements = "custom:odml.update_external_kv_cache";
  static void match(const Site& s) { s.arity(5, 2); }
  static void rewrite(const Site&, Build& b) {
    for (const uint32_t i : {0u, 1u})
      b.result(i, b.custom("fusebox.update_rows", {b.in(i), b.in(2), b.in(3 + i)})[0]);
  }
};

class UpdateRows {
 public:
  static constexpr std::string_view custom = "fusebox.update_rows";
  static constexpr uint32_t flags = FBX_KERNEL_DETERMINISTIC | FBX_KERNEL_INPLACE;

  static void supports(const Node& n);
  static void infer(const Node& n, Infer& out) { out.like(0, n.in(0)); }
  // The slot of a copy of the rows or positions, if the result may be in their memory.
  uint32_t prepare(const Node& n, Plan& plan) const;
  void invoke(const Node& n, uint32_t slot) const;
};

}  // namespace fusebox::nn
