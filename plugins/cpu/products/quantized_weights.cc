// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/quantized_weights.h"

#include <algorithm>
#include <span>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/dots.h"

namespace fusebox::cpu {
namespace {

void RequireWeights(const Node& n, ProductOperands o) {
  const Tensor w = n.in(o.weights);
  const std::string subject = "operand " + std::to_string(o.weights);
  const bool wide = o.wide_weights && w.dtype() == FBX_I16 && n.in(o.input).dtype() == FBX_I16;
  if (!Contains(kBytes, w.dtype()) && w.dtype() != FBX_I4 && !wide) RejectDtype(w.dtype(), o.weights);
  const fbx_quant& q = *w.quant();
  if (q.count <= 1) RequireScales(w, subject);  // the constructor checks per-channel scales
  if (q.kind == FBX_QUANT_BLOCKWISE) throw Reject{"QUANT", "blockwise scales are unsupported", subject};
  RequireNoZeroPoint(w, subject);
  if (q.count == 1) return;
  if (q.axis != o.channel_axis) throw Reject{"QUANT", "scales along another dim than the channels", subject};
  if (w.rank() > q.axis && w.dim(q.axis) >= 0 && w.dim(q.axis) != q.count)
    throw Reject{"QUANT", "not one scale per channel", subject};
}

void Unpack(const Tensor& w, int16_t* to) {
  const fbx_quant& q = *w.quant();
  const int64_t count = w.count();
  const bool one_zero = std::all_of(q.zero_points, q.zero_points + q.count,
                                    [&](int64_t zero) { return zero == q.zero_points[0]; });
  const int64_t run = one_zero ? std::max<int64_t>(1, count) : CountFrom(Shape(w), q.axis + 1);
  const auto unpack = [&](const auto& value_at) {
    for (int64_t first = 0; first < count; first += run) {
      const auto zero = static_cast<int16_t>(q.zero_points[first / run % q.count]);
      Vectorized([&]() FUSEBOX_INLINE {
        for (int64_t i = first; i < first + run; ++i) to[i] = static_cast<int16_t>(value_at(i) - zero);
      });
    }
  };
  const auto copy = [&](const auto* from) { unpack([from](int64_t i) FUSEBOX_INLINE { return from[i]; }); };
  switch (w.dtype()) {
    case FBX_I16: return copy(w.data<const int16_t>());
    case FBX_I8: return copy(w.data<const int8_t>());
    case FBX_U8: return copy(w.data<const uint8_t>());
    default: break;
  }
  const auto* pairs = w.data<const uint8_t>();
  unpack([pairs](int64_t i) FUSEBOX_INLINE {  // the sign bit has negative weight
    return ((i % 2 ? pairs[i / 2] >> 4 : pairs[i / 2] & 0xF) ^ 8) - 8;
  });
}

}  // namespace

void SupportsQuantized(const Node& n, const ProductOperands& o) {
  RequireWeights(n, o);
  const bool has_bias = n.has_in(o.bias);
  if (n.in(o.input).dtype() == FBX_F32) {
    if (has_bias) RequireDtype(n, o.bias, Types<float>{});
    return RequireActivation(n, o.input);
  }
  RequireQuantized(n, o.input);
  RequireQuantizedResult(n, o.input);
  RequireQuantizedActivation(n);
  const bool wide = n.in(o.input).dtype() == FBX_I16;
  RequireNoZeroPoint(n.in(o.input), "operand " + std::to_string(o.input));
  if (!has_bias || n.in(o.bias).dtype() == FBX_I32 || (wide && n.in(o.bias).dtype() == FBX_I64)) return;
  RejectDtype(n.in(o.bias).dtype(), o.bias);
}

void CheckQuantized(const Node& n, const ProductOperands& o, int64_t channels) {
  if (!n.has_in(o.bias)) return;
  const Tensor bias = n.in(o.bias);
  if (channels >= 0 && bias.rank() >= 0 && bias.is_static() && Count(bias.dims()) != channels)
    Fail("a bias of " + std::to_string(Count(bias.dims())) + " values for " + std::to_string(channels) +
             " channels",
         Operand(o.bias));
}

std::vector<FixedPoint> ResultFactors(const Node& n, const ProductOperands& o) {
  const fbx_quant& w = *n.in(o.weights).quant();
  const float in = AffineOf(n.in(o.input)).scale;
  const float out = AffineOf(n.out(0)).scale;
  // Other ops multiply a per-tensor scale as float.
  const bool exact = w.count > 1 || (o.exact_scales && n.in(o.input).dtype() != FBX_U8);
  std::vector<FixedPoint> factors;
  factors.reserve(w.count);
  for (const float scale : std::span(w.scales, w.count))
    factors.emplace_back((exact ? double{in} * scale : double{in * scale}) / out);
  return factors;
}

template <class T>
void Rearrange(const Node& n, const ProductOperands& o, const T* from, T* to) {
  const Shape s(n.in(o.weights));
  if (o.by_tap) return MoveTapsFirst(from, s[0], CountFrom(s, 1) / s[s.rank() - 1], s[s.rank() - 1], to);
  const int64_t channels = s[s.rank() - 1];
  const int64_t depth = o.taps ? Count(s) / std::max<int64_t>(1, channels) : s[s.rank() - 2];
  const int64_t matrix = depth * channels;
  if (matrix == 0) return;
  for (int64_t i = 0; i < Count(s); i += matrix) TransposeMatrix(from + i, depth, channels, to + i);
}

void UnpackWeights(const Node& n, const ProductOperands& o, int16_t* to, int16_t* scratch) {
  Unpack(n.in(o.weights), Rearranges(o) ? scratch : to);
  if (Rearranges(o)) Rearrange(n, o, scratch, to);
}

template void Rearrange(const Node&, const ProductOperands&, const int8_t*, int8_t*);

}  // namespace fusebox::cpu
