// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm_reference.h"

#include <algorithm>
#include <cmath>

namespace fusebox::rnn {
namespace {

// Eight running sums, which the compiler keeps in vector registers.
template <class T>
T Dot(const T* a, const T* b, int64_t n) {
  T sums[8] = {};
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) {
    for (int j = 0; j < 8; ++j) sums[j] += a[k + j] * b[k + j];
  }
  for (; k < n; ++k) sums[0] += a[k] * b[k];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

template <class T>
T Sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

// Comparisons that let NaN through.
template <class T>
T Clamp(T x, T low, T high) {
  return x < low ? low : x > high ? high : x;
}

template <class T>
T Activate(Activation activation, T x) {
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kRelu: return x < T(0) ? T(0) : x;
    case Activation::kReluN1To1: return Clamp(x, T(-1), T(1));
    case Activation::kRelu6: return Clamp(x, T(0), T(6));
    case Activation::kTanh: return std::tanh(x);
  }
  return x;
}

template <class T>
T Clip(T x, double bound) {
  return bound > 0 ? Clamp(x, static_cast<T>(-bound), static_cast<T>(bound)) : x;
}

template <class T>
void Normalise(T* values, int64_t n) {
  T mean = 0, variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += values[i];
  mean /= static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) variance += (values[i] - mean) * (values[i] - mean);
  const T scale = T(1) / std::sqrt(variance / static_cast<T>(n) + T(1e-8));
  for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - mean) * scale;
}

// One batch row at one step.
template <class T>
struct Cell {
  const LstmSpec& spec;
  const LstmBuffers<T>& buffers;
  T* gates;   // [4][cells]
  T* hidden;  // [cells], before projection

  const T* operand(uint32_t i) const { return buffers.operands[i]; }
  T* gate(Gate k) const { return gates + k * spec.cells; }

  void Multiply(Gate k, const T* x, const T* h) const {
    const T* w = operand(kInputWeights + k);
    const T* r = operand(kRecurrentWeights + k);
    for (int64_t i = 0; i < spec.cells; ++i) {
      const T recurrent = spec.diagonal ? r[i] * h[i] : Dot(r + i * spec.outputs, h, spec.outputs);
      gate(k)[i] = Dot(w + i * spec.inputs, x, spec.inputs) + recurrent;
    }
  }

  // From the sums of products to the gate's value. `c` is what the gate's peephole sees.
  void Finish(Gate k, const T* c) const {
    T* values = gate(k);
    if (spec.peephole && k != kCellGate) {
      const T* p = operand(k == kOutGate ? kPeephole + 2 : kPeephole + k);
      for (int64_t i = 0; i < spec.cells; ++i) values[i] += p[i] * c[i];
    }
    if (spec.layer_norm) {
      Normalise(values, spec.cells);
      for (int64_t i = 0; i < spec.cells; ++i) values[i] *= operand(kLayerNorm + k)[i];
    }
    for (int64_t i = 0; i < spec.cells; ++i) {
      const T sum = values[i] + operand(kGateBias + k)[i];
      values[i] = k == kCellGate ? Activate(spec.activation, sum) : Sigmoid(sum);
    }
  }

  void UpdateCell(T* c) const {
    for (int64_t i = 0; i < spec.cells; ++i) {
      const T forget = gate(kForgetGate)[i];
      const T in = spec.cifg ? T(1) - forget : gate(kInGate)[i];
      c[i] = Clip(forget * c[i] + in * gate(kCellGate)[i], spec.cell_clip);
    }
  }

  void UpdateOutput(const T* c, T* h) const {
    T* out = spec.projection ? hidden : h;
    for (int64_t i = 0; i < spec.cells; ++i) out[i] = gate(kOutGate)[i] * Activate(spec.activation, c[i]);
    for (int64_t i = 0; i < spec.outputs && spec.projection; ++i) {
      const T sum = Dot(operand(kProjection) + i * spec.cells, hidden, spec.cells);
      h[i] =
          Clip(sum + (operand(kProjectionBias) ? operand(kProjectionBias)[i] : T(0)), spec.projection_clip);
    }
  }

  void Step(const T* x, T* h, T* c) const {
    for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
      if (!(spec.cifg && k == kInGate)) Multiply(k, x, h);
    }
    if (!spec.cifg) Finish(kInGate, c);
    Finish(kForgetGate, c);
    Finish(kCellGate, c);
    UpdateCell(c);
    Finish(kOutGate, c);
    UpdateOutput(c, h);
  }
};

}  // namespace

template <class T>
void RunReference(const LstmSpec& spec, const LstmBuffers<T>& buffers, int64_t begin, int64_t end,
                  T* scratch) {
  const Cell<T> cell{spec, buffers, scratch, scratch + 4 * spec.cells};
  for (int64_t row = begin; row < end; ++row) {
    T* h = buffers.output_state + row * spec.outputs;
    T* c = buffers.cell_state + row * spec.cells;
    for (int64_t step = 0; step < spec.steps; ++step) {
      const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
      cell.Step(buffers.operands[kInput] + at * spec.inputs, h, c);
      std::copy_n(h, spec.outputs, buffers.output + at * spec.outputs);
    }
  }
}

template void RunReference<float>(const LstmSpec&, const LstmBuffers<float>&, int64_t, int64_t, float*);
template void RunReference<double>(const LstmSpec&, const LstmBuffers<double>&, int64_t, int64_t, double*);

}  // namespace fusebox::rnn
