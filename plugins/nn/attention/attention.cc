// SPDX-License-Identifier: Apache-2.0
#include "plugins/nn/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "plugins/math/costs.h"
#include "plugins/nn/attention/block.h"
#include "plugins/nn/attention/shape.h"

namespace fusebox::nn {
namespace {

size_t Size(Tensor t, int dim) { return static_cast<size_t>(t.dim(dim)); }

// Returns the part of k or v of a batch item and a head.
Cache CacheOf(const Node& n, uint32_t operand, const Layout& layout, size_t item, size_t head) {
  const Tensor t = n.in(operand);
  const size_t last = Size(t, 3);
  const size_t rows = Size(t, 2);
  const size_t first = layout.heads_first ? (item * Size(t, 1) + head) * rows * last
                                          : (item * Size(t, 1) * rows + head) * last;
  Cache cache{
      nullptr, layout.heads_first ? last : rows * last,  Size(t, layout.size(operand)), Cache::Type::kF32, 1,
      0,       operand == kV && layout.transposed_values};
  if (t.dtype() == FBX_F32) {
    cache.data = t.data<const float>() + first;
  } else if (t.dtype() == FBX_F16) {
    cache.data = t.data<const uint16_t>() + first;
    cache.type = Cache::Type::kF16;
  } else {
    cache.data = t.data<const int8_t>() + first;
    cache.type = Cache::Type::kI8;
    cache.scale = t.quant()->scales[0];
    if (t.quant()->zero_points) cache.zero = static_cast<int32_t>(t.quant()->zero_points[0]);
  }
  return cache;
}

// Elements from one position, or head, of q or of the result to the next, and before a batch item and a head.
struct Steps {
  size_t position, head, batch;

  Steps(Tensor t, const Layout& layout)
      : position(Size(t, 3) * (layout.heads_first ? 1 : Size(t, 2))),
        head(Size(t, 3) * (layout.heads_first ? Size(t, 2) : 1)),
        batch(Size(t, 1) * Size(t, 2) * Size(t, 3)) {}
  size_t First(size_t item, size_t number) const { return item * batch + number * head; }
};

// Elements of a bool mask, which becomes one of floats.
size_t ConvertedMask(const Node& n) {
  return n.has_in(kMask) && n.in(kMask).dtype() == FBX_BOOL ? static_cast<size_t>(n.in(kMask).count()) : 0;
}

// Strides of the mask by dimension, counted from the last one; 0 where it is broadcast.
struct Mask {
  const float* data = nullptr;
  size_t strides[4] = {};

  // `hidden` replaces false; `converted` has room for it.
  Mask(const Node& n, float hidden, float* converted) {
    if (!n.has_in(kMask)) return;
    const Tensor mask = n.in(kMask);
    if (const size_t count = ConvertedMask(n); count > 0) {
      const bool* const seen = mask.data<const bool>();
      parallel_for(n.host(), count, math::Grain(1), [&](size_t begin, size_t end, uint32_t) {
        for (size_t i = begin; i < end; ++i) converted[i] = seen[i] ? 0 : hidden;
      });
      data = converted;
    } else {
      data = mask.data<const float>();
    }
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

size_t ScratchOf(const Node& n, const Layout& layout) {
  const bool converts = n.in(kK).dtype() != FBX_F32 || n.in(kV).dtype() != FBX_F32;
  return ScratchFloats(AttentionSimd::Best().rows, Size(n.in(kK), 3), Size(n.in(kV), layout.size(kV)),
                       converts);
}

}  // namespace

void Attention::supports(const Node& n) {
  const Layout layout = Layout::Of(n);
  n.require(layout.heads_first || !layout.transposed_values, "ATTR", "needs heads_first",
            "attr transposed_values");
  RequireAttention(n, layout);
}

void Attention::infer(const Node& n, Infer& out) {
  const Tensor q = n.in(kQ);
  const Tensor v = n.in(kV);
  if (q.rank() < 0 || v.rank() < 0) return out.unranked(0, FBX_F32);
  out.set(0, FBX_F32, {q.dim(0), q.dim(1), q.dim(2), v.dim(Layout::Of(n).size(kV))});
}

Attention::Attention(const Node& n)
    : scale_(static_cast<float>(n.attrs().f64("scale", 1 / std::sqrt(static_cast<double>(n.in(kQ).dim(3)))))),
      cap_(static_cast<float>(n.attrs().f64("logit_cap", 0))),
      hidden_(static_cast<float>(n.attrs().f64("hidden", static_cast<double>(kHiddenByMask)))),
      replaces_(n.attrs().has("hidden")),
      causal_(n.attrs().b("causal", false)),
      selects_(n.attrs().b("selects", false)),
      heads_first_(n.attrs().b("heads_first", false)),
      transposed_values_(n.attrs().b("transposed_values", false)) {}

uint32_t Attention::prepare(const Node& n, Plan& plan) const {
  try {
    RequireAttention(n, {heads_first_, transposed_values_});  // with all sizes
  } catch (const Reject& r) {
    throw Error{FBX_INVALID, r.why, r.subject};
  }
  const size_t work = plan.threads() * ScratchOf(n, {heads_first_, transposed_values_});
  return plan.scratch((ConvertedMask(n) + work) * sizeof(float));
}

void Attention::invoke(const Node& n, uint32_t slot) const {
  const Tensor q = n.in(kQ);
  const Tensor k = n.in(kK);
  const Tensor out = n.out(0);
  const Layout layout{heads_first_, transposed_values_};
  const size_t positions = Size(q, layout.positions(kQ));
  const size_t shared = Size(k, layout.heads());
  const size_t group = Size(q, layout.heads()) / shared;
  const size_t keys = Size(k, layout.positions(kK));
  const Steps from(q, layout);
  const Steps to(out, layout);
  if (keys == 0) {
    std::fill_n(out.data<float>(), out.count(), 0.0f);
    return;
  }
  const AttentionCode& code = AttentionSimd::Best();
  const size_t rows = positions * group;
  const size_t blocks = (rows + code.rows - 1) / code.rows;
  const size_t scratch = ScratchOf(n, layout);
  const Mask mask(n, hidden_, n.scratch<float>(slot));
  float* const work = n.scratch<float>(slot) + ConvertedMask(n);
  parallel_for(n.host(), Size(q, 0) * shared * blocks, 1, [&](size_t begin, size_t end, uint32_t worker) {
    for (size_t i = begin; i < end; ++i) {
      const size_t block = i % blocks;
      const size_t head = i / blocks % shared;
      const size_t item = i / blocks / shared;
      const size_t row = block * code.rows;
      code.attend({.q = q.data<const float>() + from.First(item, head * group),
                   .out = out.data<float>() + to.First(item, head * group),
                   .q_stride = from.position,
                   .out_stride = to.position,
                   .q_head = from.head,
                   .out_head = to.head,
                   .group = group,
                   .first = row,
                   .rows = std::min(code.rows, rows - row),
                   .k = CacheOf(n, kK, layout, item, head),
                   .v = CacheOf(n, kV, layout, item, head),
                   .keys = keys,
                   .causal = causal_,
                   .selects = selects_,
                   .mask = mask.At(item, head * group),
                   .mask_position = mask.strides[1],
                   .mask_head = mask.strides[2],
                   .mask_key = mask.strides[0],
                   .mask_replaces = replaces_,
                   .hidden = hidden_,
                   .scale = scale_,
                   .cap = cap_,
                   .scratch = work + worker * scratch});
    }
  });
}

}  // namespace fusebox::nn
