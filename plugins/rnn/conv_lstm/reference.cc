// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/conv_lstm/engines.h"

namespace fusebox::rnn {
namespace {

// Calls f(index of the element, its position) for all elements of a space.
template <class F>
void ForSpace(const Space& sizes, const F& f) {
  int64_t index = 0;
  for (int64_t d = 0; d < sizes[0]; ++d) {
    for (int64_t h = 0; h < sizes[1]; ++h) {
      for (int64_t w = 0; w < sizes[2]; ++w) f(index++, Space{d, h, w});
    }
  }
}

// Adds to sums[row] the products of the elements around `position` with weights [rows, kernel.., channels].
template <class T>
void AddConvolution(const Convolution& c, const T* x, const Space& position, const T* weights, int64_t rows,
                    T* sums) {
  ForSpace(c.kernel, [&](int64_t tap, const Space& at) {
    int64_t from = 0;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t i = position[d] * c.strides[d] + at[d] * c.dilations[d] - c.before[d];
      if (i < 0 || i >= c.in[d]) return;
      from = from * c.in[d] + i;
    }
    for (int64_t row = 0; row < rows; ++row) {
      const T* const by = weights + (row * c.taps() + tap) * c.channels;
      for (int64_t k = 0; k < c.channels; ++k) sums[row] += by[k] * x[from * c.channels + k];
    }
  });
}

template <class T>
class ReferenceConvLstm final : public ConvLstmEngine {
  // Sums of one element, and h of one row before the step.
  size_t ScratchBytes(const ConvLstmSpec& spec, uint32_t) const override {
    return static_cast<size_t>((kConvGates + spec.positions()) * spec.cells) * sizeof(T);
  }

  void Run(const Node& node, const ConvLstmSpec& spec, std::byte* scratch, uint32_t) const override {
    const ConvLstmBuffers<T> buffers(node, spec);
    std::copy_n(buffers.initial_h, node.in(kConvH).count(), buffers.h);
    std::fill_n(buffers.output, node.out(0).count(), T(0));
    const ElementMask mask(node, spec);
    T* const sums = reinterpret_cast<T*>(scratch);
    for (int64_t row = 0; row < spec.batch; ++row) {
      for (int64_t step = 0; step < spec.steps; ++step) Step(node, spec, buffers, mask, row, step, sums);
    }
  }

  void Step(const Node& node, const ConvLstmSpec& spec, const ConvLstmBuffers<T>& buffers,
            const ElementMask& mask, int64_t row, int64_t step, T* sums) const {
    const int64_t u = spec.cells;
    const int64_t state = spec.positions() * u;
    const int64_t in = spec.at(row, step);
    const int64_t x_size = spec.of_x.in[0] * spec.of_x.in[1] * spec.of_x.in[2] * spec.of_x.channels;
    T* const before = sums + kConvGates * u;
    T* const h = buffers.h + row * state;
    T* const c = buffers.c + row * state;
    std::copy_n(h, state, before);
    T* const output = buffers.output + (spec.sequence ? row * spec.steps + step : row) * state;
    ForSpace(spec.of_x.out, [&](int64_t index, const Space& position) {
      T* const written = output + index * u;
      if (!mask.kept(in, position)) {
        if (spec.zero_output) std::fill_n(written, u, T(0));
        else if (spec.sequence && step > 0) std::copy_n(written - state, u, written);
        return;
      }
      std::copy_n(buffers.bias, kConvGates * u, sums);
      AddConvolution(spec.of_x, buffers.input + in * x_size, position, node.in(kConvWeights).data<const T>(),
                     kConvGates * u, sums);
      AddConvolution(spec.of_h, before, position, node.in(kConvRecurrent).data<const T>(), kConvGates * u,
                     sums);
      for (int64_t i = 0; i < u; ++i) {
        const auto gate = [&](int64_t k) { return common::Activate(spec.gate_activation, sums[k * u + i]); };
        T& cell = c[index * u + i];
        cell = gate(1) * cell + gate(0) * common::Activate(spec.activation, sums[2 * u + i]);
        h[index * u + i] = written[i] = gate(3) * common::Activate(spec.activation, cell);
      }
    });
  }
};

}  // namespace

ElementMask::ElementMask(const Node& node, const ConvLstmSpec& spec) {
  if (!spec.masked) return;
  mask_ = node.in(kConvMask).data<const uint8_t>();
  strides_[0] = 1;
  if (!spec.element_mask) return;
  for (size_t d = 3; d > 3 - spec.space; --d) {
    const int64_t size = node.in(kConvMask).dim(static_cast<int>(d - 1 + spec.space) - 1);
    strides_[d] = size == 1 ? 0 : strides_[0];
    strides_[0] *= size;
  }
}

std::unique_ptr<const ConvLstmEngine> MakeReferenceConvLstm(const ConvLstmSpec& spec) {
  if (spec.dtype == FBX_F64) return std::make_unique<const ReferenceConvLstm<double>>();
  return std::make_unique<const ReferenceConvLstm<float>>();
}

}  // namespace fusebox::rnn
