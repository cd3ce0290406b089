// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/reference.h"

#include <algorithm>

#include "plugins/rnn/lstm/cell.h"

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
struct PlainProducts {
  const LstmSpec& spec;
  const T* const* operands;
  const T *x = nullptr, *h = nullptr;

  void Take(const T* input, const T* state) {
    x = input;
    h = state;
  }
  void Gate(rnn::Gate k, T* sums) const {
    const T* w = operands[kInputWeights + k];
    const T* r = operands[kRecurrentWeights + k];
    for (int64_t i = 0; i < spec.cells; ++i) {
      const T recurrent = spec.diagonal ? r[i] * h[i] : Dot(r + i * spec.outputs, h, spec.outputs);
      sums[i] = Dot(w + i * spec.inputs, x, spec.inputs) + recurrent;
    }
  }
  void Project(const T* hidden, T* sums) const {
    for (int64_t i = 0; i < spec.outputs; ++i)
      sums[i] = Dot(operands[kProjection] + i * spec.cells, hidden, spec.cells);
  }
  void Squash(T* values) const {
    for (int64_t i = 0; i < spec.cells; ++i) values[i] = rnn::Activate(spec.gate_activation, values[i]);
  }
  void Activate(T* values) const {
    for (int64_t i = 0; i < spec.cells; ++i) values[i] = rnn::Activate(spec.activation, values[i]);
  }
};

}  // namespace

template <class T>
void RunReference(const LstmSpec& spec, const LstmBuffers<T>& buffers, int64_t begin, int64_t end,
                  T* scratch) {
  PlainProducts<T> products{spec, buffers.operands};
  const Cell<T, PlainProducts<T>> cell{spec, buffers.operands, products, scratch, scratch + 4 * spec.cells};
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
