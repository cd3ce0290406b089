// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/engines.h"

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
  T* const in = scratch;
  T* const state = scratch + 3 * u;
  T* const reset = scratch + 6 * u;
  const T* const recurrent = buffers.operands[kGruRecurrent];
  const T* const bias = buffers.operands[kGruRecurrentBias];
  Product(buffers.operands[kGruWeights], buffers.operands[kGruBias], x, 3 * u, spec.inputs, in);
  Product(recurrent, bias, h, (spec.reset_after ? 3 : 2) * u, u, state);
  for (int64_t i = 0; i < 2 * u; ++i) in[i] = common::Activate(spec.gate_activation, in[i] + state[i]);
  if (!spec.reset_after) {
    for (int64_t i = 0; i < u; ++i) reset[i] = in[u + i] * h[i];
    Product(recurrent + 2 * u * u, static_cast<const T*>(nullptr), reset, u, u, state + 2 * u);
  }
  for (int64_t i = 0; i < u; ++i) {
    const T recurrent_sum = spec.reset_after ? in[u + i] * state[2 * u + i] : state[2 * u + i];
    const T candidate = common::Activate(spec.activation, in[2 * u + i] + recurrent_sum);
    h[i] = in[i] * h[i] + (T(1) - in[i]) * candidate;
  }
}

template <class T>
class ReferenceGru final : public RowEngine<GruSpec, GruBuffers<T>> {
  size_t PartBytes(const GruSpec& spec) const override {
    return 7 * static_cast<size_t>(spec.cells) * sizeof(T);
  }
  void RunRows(const GruSpec& spec, const GruBuffers<T>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    for (int64_t row = begin; row < end; ++row)
      RunRow(spec, row, buffers.operands[kGruInput], buffers.state + row * spec.cells, spec.cells,
             buffers.output,
             [&](const T* x, T* h) { Step(spec, buffers, x, h, reinterpret_cast<T*>(scratch)); });
  }
};

}  // namespace

std::unique_ptr<const GruEngine> MakeReferenceGru(const GruSpec& spec) {
  if (spec.dtype == FBX_F64) return std::make_unique<const ReferenceGru<double>>();
  return std::make_unique<const ReferenceGru<float>>();
}

}  // namespace fusebox::rnn
