// SPDX-License-Identifier: Apache-2.0
// Sliding windows over images [batch, height, width, channels]: convolution and pooling.
#pragma once

#include <fusebox/kernel.hpp>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"

namespace fusebox::cpu {

using namespace sdk;

// Stride and dilation of one spatial dimension.
struct Slide {
  int64_t stride = 1;
  int64_t dilation = 1;
};
struct WindowOptions {
  bool same = true;
  Slide height, width;
};

// A missing stride is 0 in the format, and rejected.
inline Slide ReadSlide(const Attrs& attrs, std::string_view stride, std::string_view dilation) {
  const Slide s{attrs.i64(stride, 0), attrs.i64(dilation, 1)};
  if (s.stride < 1 || s.stride > INT32_MAX) Fail("a stride of " + std::to_string(s.stride), "attr stride");
  if (s.dilation < 1 || s.dilation > INT32_MAX)
    Fail("a dilation of " + std::to_string(s.dilation), "attr dilation");
  return s;
}

// "padding", "stride_h/w", "dilation_h/w_factor".
inline WindowOptions ReadWindowOptions(const Node& n) {
  const Attrs attrs = n.attrs();
  const std::string_view padding = attrs.s("padding", "SAME");
  if (padding != "SAME" && padding != "VALID")
    Fail("unknown padding " + std::string(padding), "attr padding");
  return {padding == "SAME", ReadSlide(attrs, "stride_h", "dilation_h_factor"),
          ReadSlide(attrs, "stride_w", "dilation_w_factor")};
}

// The first spatial dimension of a volume.
inline Slide DepthSlide(const Node& n) { return ReadSlide(n.attrs(), "stride_d", "dilation_d_factor"); }

// Distance from the first to the last tap of a filter, plus one.
inline int64_t Extent(int64_t filter, Slide s) {
  return Product(std::max<int64_t>(filter, 1) - 1, s.dilation) + 1;
}

// Number of window positions; -1: a size is unknown.
inline int64_t OutputSize(int64_t in, int64_t filter, Slide s, bool same) {
  if (in < 0) return -1;
  if (same) return in / s.stride + (in % s.stride != 0);
  if (filter < 0) return -1;
  const int64_t room = in - Extent(filter, s) + s.stride;
  if (room < 0)
    Fail("a window of " + std::to_string(Extent(filter, s)) + " does not fit into " + std::to_string(in));
  return room / s.stride;
}

// Padding before the first element; the larger half of an odd total is at the end.
inline int64_t PaddingBefore(int64_t in, int64_t filter, Slide s, bool same) {
  if (!same) return 0;
  const int64_t out = OutputSize(in, filter, s, same);
  return std::max<int64_t>(0, Product(out - 1, s.stride) + Extent(filter, s) - in) / 2;
}

// The taps of a window at `origin` that lie inside [0, size): [first, last).
struct TapRange {
  int64_t first, last;
};
inline TapRange InsideTaps(int64_t origin, int64_t taps, int64_t dilation, int64_t size) {
  const int64_t first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
  const int64_t last = origin < size ? (size - origin + dilation - 1) / dilation : 0;
  return {std::min(first, taps), std::max(std::min(first, taps), std::min(last, taps))};
}

// Throws unless the operand's rank is `rank` or unknown.
inline void RequireRank(const Node& n, uint32_t operand, int rank) {
  const int has = n.in(operand).rank();
  if (has >= 0 && has != rank)
    Fail("rank " + std::to_string(has) + ", expected " + std::to_string(rank), Operand(operand));
}

// A dim of an operand; -1: the dim or the rank is unknown.
inline int64_t DimOrUnknown(Tensor t, int i) { return t.rank() < 0 ? -1 : t.dim(i); }

// Throws unless the bias, if present, has `channels` values of the input's dtype.
inline void CheckBias(const Node& n, uint32_t input, uint32_t operand, int64_t channels) {
  if (!n.has_in(operand)) return;
  SameDtype(n, input, operand);
  const Tensor bias = n.in(operand);
  if (bias.rank() < 0 || !bias.is_static()) return;
  if (channels >= 0 && Count(bias.dims()) != channels)
    Fail("a bias of " + std::to_string(Count(bias.dims())) + " values for " + std::to_string(channels) +
             " channels",
         Operand(operand));
}

}  // namespace fusebox::cpu
