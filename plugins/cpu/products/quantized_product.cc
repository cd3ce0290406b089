// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/quantized_product.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/gemm.h"
#include "plugins/math/simd/quantize.h"

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

template <class Total, class Sum>
FUSEBOX_INLINE inline Total Narrowed(Sum sum) {
  if constexpr (std::is_same_v<Total, Sum>) return sum;
  else return static_cast<Total>(std::clamp<Sum>(sum, INT32_MIN, INT32_MAX));
}

}  // namespace

void QuantizedProduct::Supports(const Node& n, ProductOperands o) {
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

void QuantizedProduct::Check(const Node& n, ProductOperands o, int64_t channels) {
  if (!n.has_in(o.bias)) return;
  const Tensor bias = n.in(o.bias);
  if (channels >= 0 && bias.rank() >= 0 && bias.is_static() && Count(bias.dims()) != channels)
    Fail("a bias of " + std::to_string(Count(bias.dims())) + " values for " + std::to_string(channels) +
             " channels",
         Operand(o.bias));
}

QuantizedProduct::QuantizedProduct(const Node& n, ProductOperands o, Activation activation, bool asymmetric)
    : operands_(o),
      activation_(activation),
      hybrid_(n.in(o.input).dtype() == FBX_F32),
      asymmetric_(asymmetric),
      unsigned_(n.in(o.input).dtype() == FBX_U8),
      wide_(n.in(o.input).dtype() == FBX_I16),
      int4_(n.in(o.weights).dtype() == FBX_I4) {
  if (n.in(o.weights).is_const()) weights_ = std::make_unique<Constant>();
  if (const std::string why = WhyNoScales(n.in(o.weights)); !why.empty()) Fail(why, Operand(o.weights));
  if (hybrid_) return;
  factors_ = std::make_unique<Factors>();
  const Affine in = AffineOf(n.in(o.input)), out = AffineOf(n.out(0));
  input_scale_ = in.scale, output_scale_ = out.scale;
  input_zero_ = in.zero, output_zero_ = out.zero;
  const QuantizedRange range(activation_, n.out(0));
  lowest_ = range.lowest, highest_ = range.highest;
}

void QuantizedProduct::UnpackConstant(const Node& n, int16_t* to) const {
  Unpack(n, to);
  if (!Rearranges()) return;
  const std::vector<int16_t> columns(to, to + n.in(operands_.weights).count());
  Transpose(n, columns.data(), to);
}

template <class T>
void QuantizedProduct::Transpose(const Node& n, const T* from, T* to) const {
  const Shape s(n.in(operands_.weights));
  if (operands_.by_tap)
    return MoveTapsFirst(from, s[0], CountFrom(s, 1) / s[s.rank() - 1], s[s.rank() - 1], to);
  const int64_t channels = s[s.rank() - 1];
  const int64_t depth = operands_.taps ? Count(s) / std::max<int64_t>(1, channels) : s[s.rank() - 2];
  const int64_t matrix = depth * channels;
  if (matrix == 0) return;
  for (int64_t i = 0; i < Count(s); i += matrix) TransposeMatrix(from + i, depth, channels, to + i);
}

void QuantizedProduct::MakeFactors(const Node& n) const {
  const fbx_quant& w = *n.in(operands_.weights).quant();
  // Other ops multiply a per-tensor scale as float.
  const bool exact = w.count > 1 || (operands_.exact_scales && !unsigned_);
  std::vector<FixedPoint> factors;
  factors.reserve(w.count);
  for (const float scale : std::span(w.scales, w.count))
    factors.emplace_back((exact ? double{input_scale_} * scale : double{input_scale_ * scale}) /
                         output_scale_);
  if (wide_) factors_->wide = std::move(factors);
  else factors_->bytes = ByteScales(factors, {output_zero_, lowest_, highest_, operands_.round_half_up});
}

void QuantizedProduct::Unpack(const Node& n, int16_t* to) const {
  const Tensor w = n.in(operands_.weights);
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

QuantizedProduct::State QuantizedProduct::Prepare(const Node& n, Plan& plan, int64_t samples) const {
  const auto elements = [&](uint32_t i) {
    return static_cast<size_t>(Product(Count(n.in(i).dims()), sizeof(int16_t)));
  };
  State state;
  if (hybrid_) state.input = plan.scratch(static_cast<size_t>(Count(n.in(operands_.input).dims())));
  if (hybrid_) {
    state.scales = plan.scratch(static_cast<size_t>(Product(samples, sizeof(float))));
    state.zeros = plan.scratch(static_cast<size_t>(Product(samples, sizeof(int32_t))));
  }
  if (weights_) return state;
  state.weights = plan.scratch(elements(operands_.weights));
  if (Rearranges()) state.transposed = plan.scratch(elements(operands_.weights));
  return state;
}

void QuantizedProduct::QuantizeSamples(const Node& n, const State& state, int64_t samples, int64_t each,
                                       const float* from, int8_t* to) const {
  float* scales = n.scratch<float>(state.scales);
  int32_t* zeros = n.scratch<int32_t>(state.zeros);
  ParallelFor(n.host(), static_cast<size_t>(samples), Grain(each), [&](size_t begin, size_t end, uint32_t) {
    for (int64_t s = static_cast<int64_t>(begin); s < static_cast<int64_t>(end); ++s) {
      const math::RowScale row =
          math::QuantizeRow(from + s * each, static_cast<size_t>(each), asymmetric_, to + s * each);
      scales[s] = row.scale;
      zeros[s] = row.zero;
    }
  });
}

void QuantizedProduct::Start(const Node& n) const {
  if (factors_) factors_->make([&] { MakeFactors(n); });
}

const int16_t* QuantizedProduct::Weights(const Node& n, const State& state) const {
  if (weights_) {
    weights_->unpack([&] {
      auto values =
          std::make_unique_for_overwrite<int16_t[]>(static_cast<size_t>(n.in(operands_.weights).count()));
      UnpackConstant(n, values.get());
      weights_->values = std::move(values);
    });
    return weights_->values.get();
  }
  int16_t* to = n.scratch<int16_t>(state.weights);
  Unpack(n, to);
  if (!Rearranges()) return to;
  int16_t* rows = n.scratch<int16_t>(state.transposed);
  Transpose(n, to, rows);
  return rows;
}

template <class Sum>
void QuantizedProduct::Finish(const Node& n, const State& state, int64_t sample, int64_t first, int64_t count,
                              const Sum* sums, int64_t at) const {
  const Tensor out = n.out(0);
  if (!hybrid_) {
    if constexpr (std::is_same_v<Sum, int64_t>) return Store(n, first, count, sums, out.data<int16_t>() + at);
    else
      return BestByteKernels().store(Results(n), static_cast<size_t>(first), static_cast<size_t>(count), sums,
                                     out.data<uint8_t>() + at);
  }
  const fbx_quant& w = *n.in(operands_.weights).quant();
  const bool per_channel = w.count > 1, biased = n.has_in(operands_.bias);
  const float scale = n.scratch<float>(state.scales)[sample];
  const float* bias = biased ? n.in(operands_.bias).data<const float>() + first : nullptr;
  float* y = out.data<float>() + at;
  for (int64_t c = 0; c < count; ++c) {
    const float of_weight = w.scales[per_channel ? first + c : 0];
    y[c] = static_cast<float>(sums[c]) * (scale * of_weight) + (bias ? bias[c] : 0.0f);
  }
  Activate(activation_, y, static_cast<size_t>(count));
}

template <class Sum>
void QuantizedProduct::FinishPixels(const Node& n, const State& state, int64_t sample, int64_t pixels,
                                    int64_t channels, Sum* sums, int64_t at) const {
  if constexpr (std::is_same_v<Sum, int32_t>) {
    if (channels == 1 && !hybrid_) {  // pixels stand for channels
      const uint32_t bias =
          n.has_in(operands_.bias) ? static_cast<uint32_t>(*n.in(operands_.bias).data<const int32_t>()) : 0;
      for (int64_t i = 0; i < pixels; ++i) sums[i] = static_cast<Sum>(static_cast<uint32_t>(sums[i]) + bias);
      ByteResults results = Results(n);
      results.bias = nullptr;
      return BestByteKernels().store(results, 0, static_cast<size_t>(pixels), sums,
                                     n.out(0).data<uint8_t>() + at);
    }
  }
  for (int64_t i = 0; i < pixels; ++i, sums += channels, at += channels)
    Finish(n, state, sample, 0, channels, sums, at);
}

// TFLite scales 64-bit sums by the bias type: with a 32-bit bias the sum is narrowed to 32 bits.
template <class Out, class Sum>
void QuantizedProduct::Store(const Node& n, int64_t first, int64_t count, const Sum* sums, Out* y) const {
  const bool per_channel = factors_->wide.size() > 1, biased = n.has_in(operands_.bias);
  const FixedPoint* scales = factors_->wide.data() + (per_channel ? first : 0);
  const auto store_as = [&]<class Bias>(const Bias* bias, auto scaled) {
    Vectorized([&]() FUSEBOX_INLINE {
      for (int64_t c = 0; c < count; ++c) {
        using Bits = std::make_unsigned_t<Sum>;
        const auto sum = static_cast<Sum>(static_cast<Bits>(sums[c]) + static_cast<Bits>(bias ? bias[c] : 0));
        const int32_t z = scaled(sum, scales[per_channel ? c : 0]) + output_zero_;
        y[c] = static_cast<Out>(std::min(std::max(z, lowest_), highest_));
      }
    });
  };
  const auto store = [&]<class Bias, class Total>(const Bias* bias, Total) {
    store_as(bias, [](Sum sum, FixedPoint by) FUSEBOX_INLINE { return Scaled(Narrowed<Total>(sum), by); });
  };
  const int32_t* none = nullptr;
  if (!biased) return operands_.two_roundings ? store(none, int32_t{}) : store(none, Sum{});
  const Tensor bias = n.in(operands_.bias);
  if (bias.dtype() == FBX_I64) return store(bias.data<const int64_t>() + first, Sum{});
  store(bias.data<const int32_t>() + first, int32_t{});
}

template void QuantizedProduct::Transpose(const Node&, const int8_t*, int8_t*) const;
template void QuantizedProduct::Finish(const Node&, const State&, int64_t, int64_t, int64_t, const int32_t*,
                                       int64_t) const;
template void QuantizedProduct::Finish(const Node&, const State&, int64_t, int64_t, int64_t, const int64_t*,
                                       int64_t) const;
template void QuantizedProduct::FinishPixels(const Node&, const State&, int64_t, int64_t, int64_t, int32_t*,
                                             int64_t) const;
template void QuantizedProduct::FinishPixels(const Node&, const State&, int64_t, int64_t, int64_t, int64_t*,
                                             int64_t) const;

}  // namespace fusebox::cpu
