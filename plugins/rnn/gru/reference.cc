// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/reference.h"

#include <algorithm>

namespace fusebox::rnn {
namespace {

// out[i] = bias[i] + matrix[i] . x
template <class T>
void Product(const T* matrix, const T* bias, const T* x, int64_t rows, int64_t columns, T* out) {
  for (int64_t i = 0; i < rows; ++i) {
    T sum = bias ? bias[i] : T(0);
    for (int64_t k = 0; k < columns; ++k) sum += matrix[i * columns + k] * x[k];
    out[i] = sum;
  }
}

template <class T>
void Step(const GruSpec& spec, const GruBuffers<T>& buffers, const T* x, T* h, T* scratch) {
  const int64_t u = spec.cells;
  T *const in = scratch, *const state = scratch + 3 * u, *const reset = scratch + 6 * u;
  const T* const recurrent = buffers.operands[kGruRecurrent];
  const T* const bias = buffers.operands[kGruRecurrentBias];
  Product(buffers.operands[kGruWeights], buffers.operands[kGruBias], x, 3 * u, spec.inputs, in);
  Product(recurrent, bias, h, (spec.reset_after ? 3 : 2) * u, u, state);
  for (int64_t i = 0; i < 2 * u; ++i) in[i] = Activate(spec.gate_activation, in[i] + state[i]);
  if (!spec.reset_after) {
    for (int64_t i = 0; i < u; ++i) reset[i] = in[u + i] * h[i];
    Product(recurrent + 2 * u * u, static_cast<const T*>(nullptr), reset, u, u, state + 2 * u);
  }
  for (int64_t i = 0; i < u; ++i) {
    const T share = spec.reset_after ? in[u + i] * state[2 * u + i] : state[2 * u + i];
    const T candidate = Activate(spec.activation, in[2 * u + i] + share);
    h[i] = in[i] * h[i] + (T(1) - in[i]) * candidate;
  }
}

}  // namespace

template <class T>
void RunGruReference(const GruSpec& spec, const GruBuffers<T>& buffers, int64_t begin, int64_t end,
                     T* scratch) {
  for (int64_t row = begin; row < end; ++row) {
    T* h = buffers.state + row * spec.cells;
    for (int64_t step = 0; step < spec.steps; ++step) {
      const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
      Step(spec, buffers, buffers.operands[kGruInput] + at * spec.inputs, h, scratch);
      std::copy_n(h, spec.cells, buffers.output + at * spec.cells);
    }
  }
}

template void RunGruReference<float>(const GruSpec&, const GruBuffers<float>&, int64_t, int64_t, float*);
template void RunGruReference<double>(const GruSpec&, const GruBuffers<double>&, int64_t, int64_t, double*);

}  // namespace fusebox::rnn
