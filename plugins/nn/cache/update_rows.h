// SPDX-License-Identifier: Apache-2.0
// Updates of KV caches with a position per row, as LiteRT's custom op odml.update_external_kv_cache: the row
// i of an update becomes the row positions[i] of the cache. The first position that is smaller than the
// one before, or negative, ends the update: what follows is padding.
//
// Operands of fusebox.update_rows: cache [B, S, ...] and rows [B, T, ...], f32 or f16; positions i32 or i64
// [T], below S. Result: the cache, updated in place where the plan permits.
#pragma once

#include <cstdint>
#include <string>

#include <fusebox/kernel.hpp>
#include <fusebox/rule.hpp>

namespace fusebox::nn {

using namespace sdk;

// Declines operands that the kernel does not accept: the cache, positions and rows by index. `At`: a Site or
// a Node.
template <class At>
void RequireUpdate(const At& at, uint32_t cache, uint32_t positions, uint32_t rows) {
  const auto name = [](uint32_t i) { return "operand " + std::to_string(i); };
  const auto same = [](int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; };
  const Tensor to = at.in(cache);
  const Tensor from = at.in(rows);
  const Tensor places = at.in(positions);
  at.require(to.present() && (to.dtype() == FBX_F32 || to.dtype() == FBX_F16), "DTYPE",
             "is neither f32 nor f16", name(cache));
  at.require(to.rank() >= 2, "RANK", "has an unknown rank, or one below 2", name(cache));
  at.operand(rows, to.dtype(), to.rank());
  at.require(places.present() && (places.dtype() == FBX_I32 || places.dtype() == FBX_I64), "DTYPE",
             "is neither i32 nor i64", name(positions));
  at.require(places.rank() == 1 && same(places.dim(0), from.dim(1)), "SHAPE",
             "does not have one position per row of operand " + std::to_string(rows), name(positions));
  for (int d = 0; d < to.rank(); ++d)
    at.require(d == 1 || same(to.dim(d), from.dim(d)), "SHAPE",
               "differs from operand " + std::to_string(cache) + " in dimension " + std::to_string(d),
               name(rows));
}

// LiteRT's converter writes the composite as a custom op without a body. Operands: the caches of k and v
// [1, S, N, H], positions [T], k and v of the new tokens [1, T, N, H].
struct ExternalCacheRule {
  static constexpr std::string_view id = "fusebox.external_cache";
  static constexpr std::string_view implements = "custom:odml.update_external_kv_cache";
  static void match(const Site& s) {
    s.arity(5, 2);
    for (const uint32_t i : {0u, 1u}) RequireUpdate(s, i, 2, 3 + i);
  }
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
