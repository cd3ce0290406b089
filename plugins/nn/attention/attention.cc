// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "plugins/nn/attention/block.h"
#include "plugins/nn/attention/shape.h"

namespace fusebox::nn {
namespace {

size_t Size(Tensor t, int dim) { return static_cast<size_t>(t.dim(dim)); }

// Returns the part of k or v of a batch item and a head.
Cache CacheOf(Tensor t, size_t item, size_t head) {
  const size_t heads = Size(t, 2);
  const size_t depth = Size(t, 3);
  const size_t first = (item * Size(t, 1) * heads + head) * depth;
  const size_t stride = heads * depth;
  switch (t.dtype()) {
    case FBX_F32: return {t.data<const float>() + first, stride, depth, Cache::Type::kF32, 1, 0};
    case FBX_F16: return {t.data<const uint16_t>() + first, stride, depth, Cache::Type::kF16, 1, 0};
    default:
      return {t.data<const int8_t>() + first,
              stride,
              depth,
              Cache::Type::kI8,
              t.quant()->scales[0],
              t.quant()->zero_points ? static_cast<int32_t>(t.quant()->zero_points[0]) : 0};
  }
}

// Strides of the mask by dimension, counted from the last one; 0 where it is broadcast.
struct Mask {
  const float* data = nullptr;
  size_t strides[4] = {};

  explicit Mask(const Node& n) {
    if (!n.has_in(kMask)) return;
    const Tensor mask = n.in(kMask);
    data = mask.data<const float>();
    size_t stride = 1;
    for (int d = 0; d < mask.rank(); ++d) {
      if (mask.dim(-1 - d) != 1) strides[d] = stride;
      stride *= Size(mask, -1 - d);
    }
  }
  const float* At(size_t item, size_t head) const {
    return data ? data + item * strides[3] + head * strides[2] : nullptr;
  }
};

size_t ScratchOf(const Node& n) {
  const bool converts = n.in(kK).dtype() != FBX_F32 || n.in(kV).dtype() != FBX_F32;
  return ScratchFloats(AttentionSimd::Best().rows, Size(n.in(kK), 3), Size(n.in(kV), 3), converts);
}

}  // namespace

void Attention::supports(const Node& n) { RequireAttention(n); }

void Attention::infer(const Node& n, Infer& out) {
  const Tensor q = n.in(kQ);
  const Tensor v = n.in(kV);
  if (q.rank() < 0 || v.rank() < 0) return out.unranked(0, FBX_F32);
  out.set(0, FBX_F32, {q.dim(0), q.dim(1), q.dim(2), v.dim(3)});
}

Attention::Attention(const Node& n)
    : scale_(static_cast<float>(n.attrs().f64("scale", 1 / std::sqrt(static_cast<double>(n.in(kQ).dim(3)))))),
      cap_(static_cast<float>(n.attrs().f64("logit_cap", 0))),
      causal_(n.attrs().b("causal", false)),
      selects_(n.attrs().b("selects", false)) {}

uint32_t Attention::prepare(const Node& n, Plan& plan) const {
  try {
    RequireAttention(n);  // with all sizes
  } catch (const Reject& r) {
    throw Error{FBX_INVALID, r.why, r.subject};
  }
  return plan.scratch(plan.threads() * ScratchOf(n) * sizeof(float));
}

void Attention::invoke(const Node& n, uint32_t slot) const {
  const Tensor q = n.in(kQ);
  const Tensor k = n.in(kK);
  const Tensor out = n.out(0);
  const size_t positions = Size(q, 1);
  const size_t heads = Size(q, 2);
  const size_t shared = Size(k, 2);
  const size_t group = heads / shared;
  const size_t keys = Size(k, 1);
  const size_t depth = Size(q, 3);
  const size_t value_depth = Size(n.in(kV), 3);
  if (keys == 0) {
    std::fill_n(out.data<float>(), out.count(), 0.0f);
    return;
  }
  const AttentionCode& code = AttentionSimd::Best();
  const size_t rows = positions * group;
  const size_t blocks = (rows + code.rows - 1) / code.rows;
  const size_t scratch = ScratchOf(n);
  const Mask mask(n);
  parallel_for(n.host(), Size(q, 0) * shared * blocks, 1, [&](size_t begin, size_t end, uint32_t worker) {
    for (size_t i = begin; i < end; ++i) {
      const size_t block = i % blocks;
      const size_t head = i / blocks % shared;
      const size_t item = i / blocks / shared;
      const size_t row = block * code.rows;
      const size_t first = item * positions * heads + head * group;
      code.attend({.q = q.data<const float>() + first * depth,
                   .out = out.data<float>() + first * value_depth,
                   .q_stride = heads * depth,
                   .out_stride = heads * value_depth,
                   .group = group,
                   .first = row,
                   .rows = std::min(code.rows, rows - row),
                   .k = CacheOf(k, item, head),
                   .v = CacheOf(n.in(kV), item, head),
                   .keys = keys,
                   .causal = causal_,
                   .selects = selects_,
                   .mask = mask.At(item, head * group),
                   .mask_position = mask.strides[1],
                   .mask_head = mask.strides[2],
                   .mask_key = mask.strides[0],
                   .scale = scale_,
                   .cap = cap_,
                   .scratch = n.scratch<float>(slot) + worker * scratch});
    }
  });
}

}  // namespace fusebox::nn
