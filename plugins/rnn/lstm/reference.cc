// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "plugins/rnn/lstm/cell.h"
#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {
namespace {

// Eight partial sums, which the compiler keeps in vector registers.
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
  const T* x = nullptr;
  const T* h = nullptr;

  void Load(const T* input, const T* state) {
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
  void ActivateGate(T* values) const {
    for (int64_t i = 0; i < spec.cells; ++i) values[i] = common::Activate(spec.gate_activation, values[i]);
  }
  void Activate(T* values) const {
    for (int64_t i = 0; i < spec.cells; ++i) values[i] = common::Activate(spec.activation, values[i]);
  }
};

template <class T>
class ReferenceLstm final : public RowEngine<LstmSpec, LstmBuffers<T>> {
  size_t PartBytes(const LstmSpec& spec) const override {
    return 5 * static_cast<size_t>(spec.cells) * sizeof(T);
  }
  void RunRows(const LstmSpec& spec, const LstmBuffers<T>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    PlainProducts<T> products{spec, buffers.operands};
    RunCell<T>(spec, buffers, buffers.operands, products, reinterpret_cast<T*>(scratch), begin, end);
  }
};

}  // namespace

std::unique_ptr<const LstmEngine> MakeReferenceLstm(const LstmSpec& spec) {
  if (spec.dtype == FBX_F64) return std::make_unique<const ReferenceLstm<double>>();
  return std::make_unique<const ReferenceLstm<float>>();
}

}  // namespace fusebox::rnn
