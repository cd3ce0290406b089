// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/svdf/kernel.h"

#include <algorithm>
#include <vector>

#include "plugins/math/simd/fixed_point.h"
#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/integer_matrix.h"

namespace fusebox::rnn {
namespace {

using math::FixedPoint;
using math::Saturate;

template <class Sum, class A, class B>
Sum Dot(const A* a, const B* b, int64_t n) {
  Sum sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
  return sum;
}

// Shifts the memory of each filter of a row by one step and appends newest(filter).
template <class T, class Newest>
void ShiftState(const SvdfSpec& spec, T* state, Newest newest) {
  for (int64_t f = 0; f < spec.filters; ++f, state += spec.memory) {
    std::copy(state + 1, state + spec.memory, state);
    state[spec.memory - 1] = newest(f);
  }
}

// Float arithmetic: the outputs of a row from its state.
template <class T>
void ComputeOutput(const Node& node, const SvdfSpec& spec, const T* times, const T* state, T* out) {
  const T* const bias = node.has_in(kSvdfBias) ? node.in(kSvdfBias).data<const T>() : nullptr;
  for (int64_t unit = 0; unit < spec.units; ++unit) {
    T sum = bias == nullptr ? T(0) : bias[unit];
    for (int64_t r = 0; r < spec.rank; ++r, times += spec.memory, state += spec.memory)
      sum += Dot<T>(times, state, spec.memory);
    out[unit] = common::Activate(spec.activation, sum);
  }
}

template <class T>
void RunFloats(const Node& node, const SvdfSpec& spec) {
  T* const states = StateMemory<T>(node, kSvdfState, 1);
  const T* const features = node.in(kSvdfFeatures).data<const T>();
  const T* const times = node.in(kSvdfTimes).data<const T>();
  for (int64_t row = 0; row < spec.batch; ++row) {
    const T* const x = node.in(kSvdfInput).data<const T>() + row * spec.inputs;
    T* const state = states + row * spec.filters * spec.memory;
    ShiftState(spec, state, [&](int64_t f) { return Dot<T>(features + f * spec.inputs, x, spec.inputs); });
    ComputeOutput(node, spec, times, state, node.out(0).data<T>() + row * spec.units);
  }
}

}  // namespace

struct SvdfKernel::Hybrid {
  explicit Hybrid(const Node& node)
      : asymmetric(AsymmetricInputs(node)),
        features(node, kSvdfFeatures),
        times(Dequantized(node.in(kSvdfTimes))) {}

  static size_t ScratchBytes(const SvdfSpec& spec) {
    return HybridRows::Bytes(1, static_cast<size_t>(spec.inputs)) +
           static_cast<size_t>(spec.filters) * sizeof(float);
  }

  void Run(const Node& node, const SvdfSpec& spec, std::byte* scratch) const {
    features.PackOnce(node);
    ScratchReader reader(scratch);
    HybridRows x(reader, 1, static_cast<size_t>(spec.inputs));
    auto* const sums = reader.Take<float>(static_cast<size_t>(spec.filters));
    float* const states = StateMemory<float>(node, kSvdfState, 1);
    for (int64_t row = 0; row < spec.batch; ++row) {
      const auto* const input = node.in(kSvdfInput).data<const float>() + row * spec.inputs;
      x.Quantize(OneRow(input, spec.inputs), asymmetric);
      features.Multiply(x, nullptr, 0, sums, 0);
      float* const state = states + row * spec.filters * spec.memory;
      ShiftState(spec, state, [&](int64_t f) { return sums[f]; });
      ComputeOutput(node, spec, times.data(), state, node.out(0).data<float>() + row * spec.units);
    }
  }

  bool asymmetric;
  HybridMatrix features;
  std::vector<float> times;
};

struct SvdfKernel::Integer {
  // Products of scales in f32, as in TFLite, for bit-exact multipliers.
  explicit Integer(const Node& node)
      : state_zero(Zero(node.in(kSvdfState))),
        output_zero(Zero(node.out(0))),
        features(node, {FeaturesOf(node)}, Zero(node.in(kSvdfInput))),
        output_by(Scale(node.in(kSvdfState)) * Scale(node.in(kSvdfTimes)) / Scale(node.out(0))) {}

  static float Scale(Tensor t) { return t.quant()->scales[0]; }
  static int32_t Zero(Tensor t) { return static_cast<int32_t>(t.quant()->zero_points[0]); }
  static IntegerPart FeaturesOf(const Node& node) {
    const float by = Scale(node.in(kSvdfInput)) * Scale(node.in(kSvdfFeatures)) / Scale(node.in(kSvdfState));
    return {.operand = kSvdfFeatures, .rows = node.in(kSvdfFeatures).dim(0), .by = FixedPoint(by)};
  }

  size_t ScratchBytes(const SvdfSpec& spec) const {
    return static_cast<size_t>(spec.batch) * features.layout().padded() * sizeof(int16_t);
  }

  template <class T>
  void Run(const Node& node, const SvdfSpec& spec, std::byte* scratch) const {
    features.PackOnce(node);
    const size_t padded = features.layout().padded();
    auto* newest = reinterpret_cast<int16_t*>(scratch);
    features.code().multiply_words(
        features.TaskOf(node.in(kSvdfInput).data<const int8_t>(), static_cast<size_t>(spec.batch),
                        static_cast<size_t>(spec.inputs), newest, padded),
        0, features.groups());
    T* const states = StateMemory<T>(node, kSvdfState, 1);
    for (int64_t row = 0; row < spec.batch; ++row, newest += padded) {
      T* const state = states + row * spec.filters * spec.memory;
      ShiftState(spec, state, [&](int64_t f) { return Saturate<T>(newest[f] + state_zero); });
      OutputRow(node, spec, state, node.out(0).data<int8_t>() + row * spec.units);
    }
  }

  template <class T>
  void OutputRow(const Node& node, const SvdfSpec& spec, const T* state, int8_t* out) const {
    const T* times = node.in(kSvdfTimes).data<const T>();
    const int32_t* const bias = node.has_in(kSvdfBias) ? node.in(kSvdfBias).data<const int32_t>() : nullptr;
    const int32_t least = spec.activation == Activation::kRelu ? std::max(-128, output_zero) : -128;
    for (int64_t unit = 0; unit < spec.units; ++unit) {
      int64_t sum = bias == nullptr ? 0 : bias[unit];
      for (int64_t i = 0; i < spec.rank * spec.memory; ++i)
        sum += int64_t{*times++} * (*state++ - state_zero);
      const int64_t scaled = int64_t{output_by.Times(Saturate<int32_t>(sum))} + output_zero;
      out[unit] = static_cast<int8_t>(std::clamp<int64_t>(scaled, least, 127));
    }
  }

  int32_t state_zero, output_zero;
  IntegerMatrix features;
  FixedPoint output_by;
};

void SvdfKernel::supports(const Node& node) { SvdfSpec{node}; }

void SvdfKernel::infer(const Node& node, Infer& out) {
  const SvdfSpec spec = ParseSpec<SvdfSpec>(node);
  out.set(0, spec.dtype, {spec.batch, spec.units});
  if (node.out_count() > 1) out.like(1, node.in(kSvdfState));
}

SvdfKernel::SvdfKernel(const Node& node) {
  const SvdfSpec spec = ParseSpec<SvdfSpec>(node);
  if (spec.form == SvdfSpec::Form::kHybrid) hybrid_ = std::make_unique<const Hybrid>(node);
  if (spec.form == SvdfSpec::Form::kInteger) integer_ = std::make_unique<const Integer>(node);
}

SvdfKernel::~SvdfKernel() = default;

SvdfKernel::Shapes SvdfKernel::prepare(const Node& node, Plan& plan) const {
  Shapes shapes{ParseSpec<SvdfSpec>(node), 0};
  if (hybrid_) shapes.scratch = plan.scratch(Hybrid::ScratchBytes(shapes.spec));
  if (integer_) shapes.scratch = plan.scratch(integer_->ScratchBytes(shapes.spec));
  return shapes;
}

void SvdfKernel::invoke(const Node& node, const Shapes& shapes) const {
  const SvdfSpec& spec = shapes.spec;
  if (hybrid_ || integer_) {
    auto* const scratch = node.scratch<std::byte>(shapes.scratch);
    if (hybrid_) return hybrid_->Run(node, spec, scratch);
    if (spec.state_dtype == FBX_I8) return integer_->Run<int8_t>(node, spec, scratch);
    return integer_->Run<int16_t>(node, spec, scratch);
  }
  spec.dtype == FBX_F64 ? RunFloats<double>(node, spec) : RunFloats<float>(node, spec);
}

}  // namespace fusebox::rnn
