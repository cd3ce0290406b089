// SPDX-License-Identifier: Apache-2.0
// Conditions on the operands of attention, for the rule and for the kernel.
#pragma once

#include <string>

#include <fusebox/site.hpp>

namespace fusebox::nn {

using namespace sdk;

constexpr uint32_t kQ = 0;
constexpr uint32_t kK = 1;
constexpr uint32_t kV = 2;
constexpr uint32_t kMask = 3;

inline bool MayBe(int64_t a, int64_t b) { return a < 0 || b < 0 || a == b; }

template <class Checked>
void RequireCache(const Checked& c, uint32_t i) {
  const std::string subject = "operand " + std::to_string(i);
  const Tensor t = c.in(i);
  const fbx_quant* const quant = t.quant();
  const bool bytes = t.dtype() == FBX_I8 && quant != nullptr && quant->kind == FBX_QUANT_PER_TENSOR;
  c.require(t.dtype() == FBX_F32 || t.dtype() == FBX_F16 || bytes, "DTYPE",
            "is neither f32 nor f16 nor i8 with one scale", subject);
  c.require(t.rank() == 4, "RANK", "does not have rank 4", subject);
  c.require(t.dim(2) > 0 && t.dim(3) > 0, "SHAPE", "has an unknown number or size of heads", subject);
}

// The dimension of [B,N,T,S] that dimension d of the mask, counted from its last one, is broadcast to.
template <class Checked>
int64_t FullMaskDim(const Checked& c, int d) {
  switch (d) {
    case 0: return c.in(kK).dim(1);
    case 1: return c.in(kQ).dim(1);
    case 2: return c.in(kQ).dim(2);
    default: return c.in(kQ).dim(0);
  }
}

template <class Checked>
void RequireAttention(const Checked& c) {
  c.require((c.in_count() == 3 || c.in_count() == 4) && c.out_count() == 1, "ARITY",
            "needs 3 or 4 operands and 1 result");
  c.operand(kQ, FBX_F32, 4);
  RequireCache(c, kK);
  RequireCache(c, kV);
  const Tensor q = c.in(kQ);
  const Tensor k = c.in(kK);
  const Tensor v = c.in(kV);
  c.require(q.dim(3) == k.dim(3), "SHAPE", "does not have the head size of q", "operand 1");
  c.require(MayBe(k.dim(1), v.dim(1)) && MayBe(k.dim(0), v.dim(0)) && MayBe(k.dim(0), q.dim(0)) &&
                k.dim(2) == v.dim(2),
            "SHAPE", "does not have the batch, the length or the heads of k", "operand 2");
  c.require(
      q.dim(2) > 0 && q.dim(2) % k.dim(2) == 0, "SHAPE",
      std::to_string(q.dim(2)) + " heads are no multiple of the " + std::to_string(k.dim(2)) + " heads of k",
      "operand 0");
  if (c.in_count() <= kMask || !c.in(kMask).present()) return;
  c.operand(kMask, FBX_F32);
  const Tensor mask = c.in(kMask);
  c.require(mask.rank() >= 1 && mask.rank() <= 4, "RANK", "does not have rank 1 to 4", "operand 3");
  for (int d = 0; d < mask.rank(); ++d)
    c.require(mask.dim(-1 - d) == 1 || MayBe(mask.dim(-1 - d), FullMaskDim(c, d)), "SHAPE",
              "is not broadcast to [batch, heads, positions, keys]", "operand 3");
}

}  // namespace fusebox::nn
