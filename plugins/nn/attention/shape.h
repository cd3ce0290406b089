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

// The order of the dimensions: [batch, position, head, feature], or [batch, head, position, feature], in
// which v may be [batch, head, feature, position].
struct Layout {
  bool heads_first = false;
  bool transposed_values = false;

  template <class Checked>
  static Layout Of(const Checked& c) {
    return {c.attrs().b("heads_first", false), c.attrs().b("transposed_values", false)};
  }
  int positions(uint32_t i) const { return i == kV && transposed_values ? 3 : heads_first ? 2 : 1; }
  int heads() const { return heads_first ? 1 : 2; }
  int size(uint32_t i) const { return i == kV && transposed_values ? 2 : 3; }
};

template <class Checked>
void RequireCache(const Checked& c, uint32_t i, const Layout& layout) {
  const std::string subject = "operand " + std::to_string(i);
  const Tensor t = c.in(i);
  const fbx_quant* const quant = t.quant();
  const bool bytes = t.dtype() == FBX_I8 && quant != nullptr && quant->kind == FBX_QUANT_PER_TENSOR;
  c.require(t.dtype() == FBX_F32 || t.dtype() == FBX_F16 || bytes, "DTYPE",
            "is neither f32 nor f16 nor i8 with one scale", subject);
  c.require(t.rank() == 4, "RANK", "does not have rank 4", subject);
  c.require(t.dim(layout.heads()) > 0 && t.dim(layout.size(i)) > 0, "SHAPE",
            "has an unknown number or size of heads", subject);
}

// The dimension of [B,N,T,S] that dimension d of the mask, counted from its last one, is broadcast to.
template <class Checked>
int64_t FullMaskDim(const Checked& c, const Layout& layout, int d) {
  switch (d) {
    case 0: return c.in(kK).dim(layout.positions(kK));
    case 1: return c.in(kQ).dim(layout.positions(kQ));
    case 2: return c.in(kQ).dim(layout.heads());
    default: return c.in(kQ).dim(0);
  }
}

template <class Checked>
void RequireMask(const Checked& c, const Layout& layout) {
  const Tensor mask = c.in(kMask);
  c.require(mask.rank() >= 1 && mask.rank() <= 4, "RANK", "does not have rank 1 to 4", "operand 3");
  for (int d = 0; d < mask.rank(); ++d)
    c.require(mask.dim(-1 - d) == 1 || MayBe(mask.dim(-1 - d), FullMaskDim(c, layout, d)), "SHAPE",
              "is not broadcast to [batch, heads, positions, keys]", "operand 3");
}

// q, k and v.
template <class Checked>
void RequireHeads(const Checked& c, const Layout& layout) {
  c.operand(kQ, FBX_F32, 4);
  RequireCache(c, kK, layout);
  RequireCache(c, kV, layout);
  const int heads = layout.heads();
  const Tensor q = c.in(kQ);
  const Tensor k = c.in(kK);
  const Tensor v = c.in(kV);
  c.require(q.dim(3) == k.dim(3), "SHAPE", "does not have the head size of q", "operand 1");
  c.require(MayBe(k.dim(layout.positions(kK)), v.dim(layout.positions(kV))) && MayBe(k.dim(0), v.dim(0)) &&
                MayBe(k.dim(0), q.dim(0)) && k.dim(heads) == v.dim(heads),
            "SHAPE", "does not have the batch, the length or the heads of k", "operand 2");
  c.require(q.dim(heads) > 0 && q.dim(heads) % k.dim(heads) == 0, "SHAPE",
            std::to_string(q.dim(heads)) + " heads are no multiple of the " + std::to_string(k.dim(heads)) +
                " heads of k",
            "operand 0");
}

template <class Checked>
void RequireAttention(const Checked& c, const Layout& layout) {
  c.require((c.in_count() == 3 || c.in_count() == 4) && c.out_count() == 1, "ARITY",
            "needs 3 or 4 operands and 1 result");
  RequireHeads(c, layout);
  if (c.in_count() <= kMask || !c.in(kMask).present()) return;
  if (c.in(kMask).dtype() != FBX_BOOL || !c.attrs().has("hidden")) c.operand(kMask, FBX_F32);
  RequireMask(c, layout);
}

}  // namespace fusebox::nn
