// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/hybrid.h"

#include <algorithm>

namespace fusebox::rnn {

struct HybridGru::Scratch {
  HybridVector x, h;
  float *of_x, *of_h;  // sums by gate, [padded] each
  float* reset;        // [padded]
};

HybridGru::HybridGru(const GruSpec& spec, const Node& node)
    : code_(BestPanelCode()),
      asymmetric_(node.attrs().b("asymmetric_quantize_inputs", false)),
      padded_(RoundUp(static_cast<size_t>(spec.cells), code_.lanes)) {
  const HybridMatrix input(node.in(kGruWeights), asymmetric_), recurrent(node.in(kGruRecurrent), asymmetric_);
  for (int64_t gate = 0; gate < kGruGates; ++gate) {
    input_[gate] = input.Rows(gate * spec.cells, spec.cells);
    recurrent_[gate] = recurrent.Rows(gate * spec.cells, spec.cells);
  }
}

size_t HybridGru::ScratchBytes(const GruSpec& spec) const {
  const size_t floats = (2 * static_cast<size_t>(kGruGates) + 1) * padded_;
  return HybridBytes(spec.inputs) + HybridBytes(spec.cells) +
         HybridBytes(static_cast<int64_t>(floats * sizeof(float)));
}

void HybridGru::Step(const GruSpec& spec, const GruBuffers<float>& buffers, const float* x, float* state,
                     Scratch& scratch) const {
  scratch.x.Quantize(x, spec.inputs, asymmetric_);
  scratch.h.Quantize(state, spec.cells, asymmetric_);
  const float* const recurrent_bias = buffers.operands[kGruRecurrentBias];
  for (size_t gate = 0; gate < kGruGates; ++gate) {
    float* const of_x = scratch.of_x + gate * padded_;
    float* const of_h = scratch.of_h + gate * padded_;
    std::copy_n(buffers.operands[kGruBias] + static_cast<int64_t>(gate) * spec.cells, spec.cells, of_x);
    input_[gate].Multiply(scratch.x, true, of_x);
    if (gate == 2 && !spec.reset_after) continue;
    if (recurrent_bias)
      std::copy_n(recurrent_bias + static_cast<int64_t>(gate) * spec.cells, spec.cells, of_h);
    recurrent_[gate].Multiply(scratch.h, recurrent_bias != nullptr, of_h);
  }
  const auto cells = static_cast<size_t>(spec.cells), width = kGruGates * padded_;
  GruTask task{1,     cells, padded_, scratch.of_x, width,           scratch.of_h,        width,
               state, cells, state,   cells,        spec.activation, spec.gate_activation};
  if (spec.reset_after) return code_.gru_after(task);
  GruTask reset = task;
  reset.after = scratch.reset;
  code_.gru_reset(reset);
  scratch.h.Quantize(scratch.reset, spec.cells, asymmetric_);
  recurrent_[2].Multiply(scratch.h, false, scratch.of_h + 2 * padded_);
  code_.gru_before(task);
}

void HybridGru::Run(const GruSpec& spec, const GruBuffers<float>& buffers, int64_t begin, int64_t end,
                    std::byte* scratch) const {
  const auto take = [&](size_t bytes) {
    std::byte* const at = scratch;
    scratch += bytes;
    return at;
  };
  Scratch parts{};
  parts.x.values = reinterpret_cast<int8_t*>(take(HybridBytes(spec.inputs)));
  parts.h.values = reinterpret_cast<int8_t*>(take(HybridBytes(spec.cells)));
  parts.of_x = reinterpret_cast<float*>(scratch);
  parts.of_h = parts.of_x + kGruGates * padded_;
  parts.reset = parts.of_h + kGruGates * padded_;
  // What is beyond the cells is computed too, and never read.
  std::fill_n(parts.of_x, (2 * kGruGates + 1) * padded_, 0.0F);
  for (int64_t row = begin; row < end; ++row) {
    float* const h = buffers.state + row * spec.cells;
    for (int64_t step = 0; step < spec.steps; ++step) {
      const int64_t at = spec.time_major ? step * spec.batch + row : row * spec.steps + step;
      Step(spec, buffers, buffers.operands[kGruInput] + at * spec.inputs, h, parts);
      std::copy_n(h, spec.cells, buffers.output + at * spec.cells);
    }
  }
}

}  // namespace fusebox::rnn
