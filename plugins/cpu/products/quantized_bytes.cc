// SPDX-License-Identifier: Apache-2.0
#include "plugins/cpu/products/quantized_bytes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "plugins/cpu/base/shape.h"
#include "plugins/cpu/base/simd.h"
#include "plugins/cpu/products/dots.h"
#include "plugins/math/simd/quantize.h"

namespace fusebox::cpu {
QuantizedBytes::QuantizedBytes(const Node& n, ProductOperands o, Activation activation, bool asymmetric)
    : operands_(o),
      activation_(activation),
      hybrid_(n.in(o.input).dtype() == FBX_F32),
      asymmetric_(asymmetric),
      unsigned_(n.in(o.input).dtype() == FBX_U8) {
  if (n.in(o.weights).is_const()) weights_ = std::make_unique<Constant>();
  if (const std::string why = WhyNoScales(n.in(o.weights)); !why.empty()) Fail(why, Operand(o.weights));
  if (hybrid_) return;
  factors_ = std::make_unique<Factors>();
  input_zero_ = AffineOf(n.in(o.input)).zero;
}

QuantizedBytes::State QuantizedBytes::Prepare(const Node& n, Plan& plan, int64_t samples) const {
  const auto slot = [&](int64_t count, int64_t bytes) {
    return plan.scratch(static_cast<size_t>(Product(count, bytes)));
  };
  State state;
  if (hybrid_) {
    state.input = slot(Count(n.in(operands_.input).dims()), 1);
    state.scales = slot(samples, sizeof(float));
    state.zeros = slot(samples, sizeof(int32_t));
  }
  if (weights_) return state;
  const int64_t values = Count(n.in(operands_.weights).dims());
  state.weights = slot(values, sizeof(int16_t));
  if (Rearranges(operands_)) state.stored = slot(values, sizeof(int16_t));
  return state;
}

void QuantizedBytes::QuantizeSamples(const Node& n, const State& state, int64_t samples, int64_t each,
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

void QuantizedBytes::Start(const Node& n) const {
  if (hybrid_) return;
  factors_->make([&] {
    const QuantizedRange range(activation_, n.out(0));
    factors_->scales = ByteScales(ResultFactors(n, operands_), {AffineOf(n.out(0)).zero, range.lowest,
                                                                range.highest, operands_.round_half_up});
  });
}

void QuantizedBytes::Finish(const Node& n, const State& state, int64_t sample, int64_t first, int64_t count,
                            const int32_t* sums, int64_t at) const {
  const Tensor out = n.out(0);
  if (!hybrid_)
    return BestByteKernels().store(Results(n), static_cast<size_t>(first), static_cast<size_t>(count), sums,
                                   out.data<uint8_t>() + at);
  float* const y = out.data<float>() + at;
  BestByteKernels().store_floats(FloatsOf(n), n.scratch<float>(state.scales)[sample],
                                 static_cast<size_t>(first), static_cast<size_t>(count), sums, y);
  if (activation_ == Activation::kTanh) Activate(activation_, y, static_cast<size_t>(count));
}

FloatResults QuantizedBytes::FloatsOf(const Node& n) const {
  const fbx_quant& w = *n.in(operands_.weights).quant();
  const ActivationRange<float> range(activation_);
  return {w.scales, w.count > 1,
          n.has_in(operands_.bias) ? n.in(operands_.bias).data<const float>() : nullptr, range.lowest,
          range.highest};
}

void QuantizedBytes::FinishPixels(const Node& n, const State& state, int64_t sample, int64_t pixels,
                                  int64_t channels, int32_t* sums, int64_t at) const {
  if (channels == 1 && !hybrid_) {  // pixels stand for channels
    const uint32_t bias =
        n.has_in(operands_.bias) ? static_cast<uint32_t>(*n.in(operands_.bias).data<const int32_t>()) : 0;
    for (int64_t i = 0; i < pixels; ++i)
      sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + bias);
    ByteResults results = Results(n);
    results.bias = nullptr;
    return BestByteKernels().store(results, 0, static_cast<size_t>(pixels), sums,
                                   n.out(0).data<uint8_t>() + at);
  }
  for (int64_t i = 0; i < pixels; ++i, sums += channels, at += channels)
    Finish(n, state, sample, 0, channels, sums, at);
}

}  // namespace fusebox::cpu
