// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/kernel.h"

#include <algorithm>

namespace fusebox::rnn {
namespace {

template <class T>
struct RnnBuffers {
  explicit RnnBuffers(const Node& node)
      : x(node.in(kRnnInput).data<const T>()),
        bias(node.in(kRnnBias).data<const T>()),
        output(node.out(0).data<T>()),
        state(StateMemory<T>(node, kRnnState, 1)) {
    if (IsInt8(node, kRnnWeights)) return;
    weights = node.in(kRnnWeights).data<const T>();
    recurrent = node.in(kRnnRecurrent).data<const T>();
  }

  const T *x, *bias;
  const T* weights = nullptr;  // null: i8
  const T* recurrent = nullptr;
  T *output, *state;
};

// The definition of the op, f32 and f64, with weights as in the file.
template <class T>
class ReferenceRnn final : public RowEngine<RnnSpec, RnnBuffers<T>> {
  size_t PartBytes(const RnnSpec& spec) const override { return static_cast<size_t>(spec.cells) * sizeof(T); }

  void RunRows(const RnnSpec& spec, const RnnBuffers<T>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    T* const next = reinterpret_cast<T*>(scratch);
    const int64_t n = spec.inputs;
    const int64_t u = spec.cells;
    for (int64_t row = begin; row < end; ++row) {
      RunRow(spec, row, buffers.x, buffers.state + row * u, u, buffers.output, [&](const T* x, T* h) {
        for (int64_t i = 0; i < u; ++i) {
          T sum = buffers.bias[i];
          for (int64_t k = 0; k < n; ++k) sum += buffers.weights[i * n + k] * x[k];
          for (int64_t k = 0; k < u; ++k) sum += buffers.recurrent[i * u + k] * h[k];
          next[i] = common::Activate(spec.activation, sum);
        }
        std::copy_n(next, u, h);
      });
    }
  }
};

}  // namespace

std::unique_ptr<const RnnEngine> MakeEngine(const RnnSpec& spec, const Node& node) {
  if (spec.hybrid) return MakeHybridRnn(node);
  if (spec.dtype == FBX_F64) return std::make_unique<const ReferenceRnn<double>>();
  if (spec.constant_weights) return MakePackedRnn(spec, node);
  return std::make_unique<const ReferenceRnn<float>>();
}

void RnnKernel::supports(const Node& node) { RnnSpec{node}; }

void RnnKernel::infer(const Node& node, Infer& out) {
  const auto spec = ParseSpec<RnnSpec>(node);
  SetSequence(out, 0, spec, spec.cells);
  if (node.out_count() > 1) out.like(1, node.in(kRnnState));
}

}  // namespace fusebox::rnn
