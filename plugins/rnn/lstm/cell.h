// SPDX-License-Identifier: Apache-2.0
// One step of one row of the cell (lstm/spec.h). `Products` computes matrix products and activations:
//
//   void Load(const T* x, const T* h)        the vectors of the products that follow
//   void Gate(Gate k, T* sums)               sums[cells] = W[1+k] x + R[5+k] h
//   void Project(const T* hidden, T* sums)   sums[outputs] = P[16] hidden
//   void ActivateGate(T* values)             values[cells] = sigmoid(values), or the recurrent activation
//   void Activate(T* values)                 values[cells] = act(values)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {

template <class T>
T Clip(T x, double bound) {
  return bound > 0 ? common::Clamp(x, static_cast<T>(-bound), static_cast<T>(bound)) : x;
}

// Scales to mean 0 and variance 1.
template <class T>
void Normalize(T* values, int64_t n) {
  T mean = 0;
  T variance = 0;
  for (int64_t i = 0; i < n; ++i) mean += values[i];
  mean /= static_cast<T>(n);
  for (int64_t i = 0; i < n; ++i) variance += (values[i] - mean) * (values[i] - mean);
  const T scale = T(1) / std::sqrt(variance / static_cast<T>(n) + T(1e-8));
  for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - mean) * scale;
}

template <class T, class Products>
struct Cell {
  const LstmSpec& spec;
  const T* const* operands;  // 9-11, 12-15, 17 and 20-23 are read; null: absent
  Products& products;
  T* gates;   // [4][cells]
  T* hidden;  // [cells], before projection

  // x [inputs]; h [outputs] and c [cells] are updated.
  void Step(const T* x, T* h, T* c) const {
    products.Load(x, h);
    for (const Gate k : {kInGate, kForgetGate, kCellGate, kOutGate}) {
      if (spec.HasGate(k)) products.Gate(k, gate(k));
    }
    if (!spec.cifg) Finish(kInGate, c);
    Finish(kForgetGate, c);
    Finish(kCellGate, c);
    UpdateCell(c);
    Finish(kOutGate, c);
    UpdateOutput(c, h);
  }

 private:
  T* gate(Gate k) const { return gates + k * spec.cells; }

  // From the sums of products to the value of the gate. Its peephole reads `c`.
  void Finish(Gate k, const T* c) const {
    T* values = gate(k);
    if (spec.peephole && k != kCellGate) {
      const T* p = operands[k == kOutGate ? kPeephole + 2 : kPeephole + k];
      for (int64_t i = 0; i < spec.cells; ++i) values[i] += p[i] * c[i];
    }
    if (spec.layer_norm) {
      Normalize(values, spec.cells);
      for (int64_t i = 0; i < spec.cells; ++i) values[i] *= operands[kLayerNorm + k][i];
    }
    for (int64_t i = 0; i < spec.cells; ++i) values[i] += operands[kGateBias + k][i];
    k == kCellGate ? products.Activate(values) : products.ActivateGate(values);
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
    std::copy_n(c, spec.cells, out);
    products.Activate(out);
    for (int64_t i = 0; i < spec.cells; ++i) out[i] *= gate(kOutGate)[i];
    if (!spec.projection) return;
    products.Project(hidden, h);
    const T* bias = operands[kProjectionBias];
    for (int64_t i = 0; i < spec.outputs; ++i)
      h[i] = Clip(h[i] + (bias ? bias[i] : T(0)), spec.projection_clip);
  }
};

// Runs all steps of the rows [begin, end). `scratch` has 5 * cells elements.
template <class T, class Products>
void RunCell(const LstmSpec& spec, const LstmBuffers<T>& buffers, const T* const* operands,
             Products& products, T* scratch, int64_t begin, int64_t end) {
  const Cell<T, Products> cell{spec, operands, products, scratch, scratch + 4 * spec.cells};
  for (int64_t row = begin; row < end; ++row) {
    T* const c = buffers.cell_state + row * spec.cells;
    RunRow(spec, row, operands[kInput], buffers.output_state + row * spec.outputs, spec.outputs,
           buffers.output, [&](const T* x, T* h) { cell.Step(x, h, c); });
  }
}

}  // namespace fusebox::rnn
