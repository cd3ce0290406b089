// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/gru/engines.h"

namespace fusebox::rnn {
namespace {

class HybridGru final : public RowEngine<GruSpec, GruBuffers<float>> {
 public:
  HybridGru(const GruSpec& spec, const Node& node)
      : code_(BestPanelCode()),
        asymmetric_(AsymmetricInputs(node)),
        padded_(RoundUp(static_cast<size_t>(spec.cells), code_.lanes)) {
    const HybridMatrix input(node.in(kGruWeights), asymmetric_),
        recurrent(node.in(kGruRecurrent), asymmetric_);
    for (int64_t gate = 0; gate < kGruGates; ++gate) {
      input_[gate] = input.Rows(gate * spec.cells, spec.cells);
      recurrent_[gate] = recurrent.Rows(gate * spec.cells, spec.cells);
    }
  }

 private:
  struct Scratch {
    HybridVector x, h;
    float *of_x, *of_h;  // sums by gate, [padded] each
    float* reset;        // [padded]
  };

  size_t Floats() const { return (2 * static_cast<size_t>(kGruGates) + 1) * padded_; }

  size_t PartBytes(const GruSpec& spec) const override {
    return HybridVector::Bytes(spec.inputs) + HybridVector::Bytes(spec.cells) +
           ScratchReader::Bytes(Floats() * sizeof(float));
  }

  void RunRows(const GruSpec& spec, const GruBuffers<float>& buffers, int64_t begin, int64_t end,
               std::byte* scratch) const override {
    ScratchReader reader(scratch);
    HybridVector x(reader, spec.inputs), h(reader, spec.cells);
    float* const floats = reader.Take<float>(Floats());
    // Lanes beyond the cells are computed too, and never read.
    std::fill_n(floats, Floats(), 0.0F);
    float* const of_h = floats + kGruGates * padded_;
    Scratch parts{x, h, floats, of_h, of_h + kGruGates * padded_};
    for (int64_t row = begin; row < end; ++row)
      RunRow(spec, row, buffers.operands[kGruInput], buffers.state + row * spec.cells, spec.cells,
             buffers.output,
             [&](const float* input, float* state) { Step(spec, buffers, input, state, parts); });
  }

  void Step(const GruSpec& spec, const GruBuffers<float>& buffers, const float* x, float* state,
            Scratch& scratch) const {
    scratch.x.Quantize(x, spec.inputs, asymmetric_);
    scratch.h.Quantize(state, spec.cells, asymmetric_);
    const float* const recurrent_bias = buffers.operands[kGruRecurrentBias];
    for (size_t gate = 0; gate < kGruGates; ++gate) {
      const int64_t first = static_cast<int64_t>(gate) * spec.cells;
      float* const of_x = scratch.of_x + gate * padded_;
      float* const of_h = scratch.of_h + gate * padded_;
      std::copy_n(buffers.operands[kGruBias] + first, spec.cells, of_x);
      input_[gate].Multiply(scratch.x, true, of_x);
      if (gate == 2 && !spec.reset_after) continue;
      if (recurrent_bias) std::copy_n(recurrent_bias + first, spec.cells, of_h);
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

  const PanelCode& code_;
  bool asymmetric_;
  size_t padded_;                                         // cells, rounded up to whole vectors
  HybridMatrix input_[kGruGates], recurrent_[kGruGates];  // by gate
};

}  // namespace

std::unique_ptr<const GruEngine> MakeHybridGru(const GruSpec& spec, const Node& node) {
  return std::make_unique<const HybridGru>(spec, node);
}

}  // namespace fusebox::rnn
