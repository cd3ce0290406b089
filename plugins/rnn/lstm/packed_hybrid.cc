// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {
namespace {

std::vector<ByteTile> Gates(const LstmSpec& spec, uint32_t first) {
  std::vector<ByteTile> parts;
  for (uint32_t gate = 0; gate < kGates; ++gate) parts.push_back({first + gate, 0, spec.cells});
  return parts;
}

class PackedHybridLstm final : public LstmEngine {
 public:
  PackedHybridLstm(const LstmSpec& spec, const Node& node)
      : asymmetric_(AsymmetricInputs(node)),
        input_(node, Gates(spec, kInputWeights), true),
        recurrent_(node, Gates(spec, kRecurrentWeights), true),
        bias_(input_.layout().padded()) {
    for (uint32_t gate = 0; gate < kGates; ++gate) {
      const auto* const bias = node.in(kGateBias + gate).data<const float>();
      for (size_t i = 0; i < static_cast<size_t>(spec.cells); ++i) bias_[input_.OutputOf(gate, i)] = bias[i];
    }
  }

  size_t ScratchBytes(const LstmSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * RowBytes(ChunkSteps(spec, bias_.size()));
  }

  void Run(const Node& node, const LstmSpec& spec, std::byte* scratch, uint32_t threads) const override {
    for (const HybridMatrix* matrix : {&input_, &recurrent_}) matrix->PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, bias_.size()));
    float* const h = StateMemory<float>(node, kOutputState, 1);
    float* const c = StateMemory<float>(node, kCellState, 2);
    s.initial = s.final_state = h;
    ForRowGroups(s, s.batch * s.steps * kGates * s.cells * (s.inputs + s.cells),
                 [&](size_t begin, size_t end, bool split) {
                   RunRows(spec, s, c + begin * s.cells, scratch + begin * RowBytes(s.chunk_steps), begin,
                           end, split);
                 });
  }

 private:
  // Scratch of a row: the quantized inputs and their products of a chunk, and the quantized state.
  size_t RowBytes(size_t chunk_steps) const {
    return HybridRows::Bytes(chunk_steps, input_.layout().k) + HybridRows::Bytes(1, recurrent_.layout().k) +
           ScratchReader::Bytes(chunk_steps * bias_.size() * sizeof(float));
  }

  void RunRows(const LstmSpec& spec, const Sequence& s, float* c, std::byte* scratch, size_t begin,
               size_t end, bool split) const {
    const size_t rows = end - begin;
    const size_t sums = bias_.size();
    ScratchReader reader(scratch);
    HybridRows x(reader, s.chunk_steps * rows, s.inputs);
    HybridRows h(reader, rows, s.cells);
    auto* const z = reader.Take<float>(s.chunk_steps * rows * sums);
    const auto project = [&](const InputRows& in) {
      x.Quantize(in, asymmetric_);
      MultiplySplit(input_, s, split, input_.TaskOf(x, bias_.data(), 0, z, sums));
    };
    const auto step = [&](size_t t, size_t in_chunk, const StepRows& at) {
      h.Quantize(InputRows{at.before, 1, rows, 0, at.before_stride, s.cells}, asymmetric_);
      const HybridStepTask task{.product = recurrent_.Product(h),
                                .row_scales = h.scales,
                                .output_scales = recurrent_.scales(),
                                .z = z + in_chunk * rows * sums,
                                .cells = s.cells,
                                .h_after = at.after,
                                .h_after_stride = at.after_stride,
                                .c = c,
                                .activation = spec.activation,
                                .gate_activation = spec.gate_activation,
                                .cell_clip = static_cast<float>(spec.cell_clip),
                                .reverse = t % 2 == 1};
      recurrent_.code().lstm_step(task, 0, recurrent_.groups());
    };
    RunSequence(s, begin, end, project, step);
  }

  bool asymmetric_;
  HybridMatrix input_, recurrent_;
  std::vector<float> bias_;  // [block][gate][lane], as the outputs of the matrices
};

}  // namespace

std::unique_ptr<const LstmEngine> MakePackedHybridLstm(const LstmSpec& spec, const Node& node) {
  return std::make_unique<const PackedHybridLstm>(spec, node);
}

}  // namespace fusebox::rnn
