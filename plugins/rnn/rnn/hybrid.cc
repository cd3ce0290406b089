// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/rnn/kernel.h"

namespace fusebox::rnn {
namespace {

class HybridRnn final : public RnnEngine {
 public:
  explicit HybridRnn(const Node& node)
      : code_(BestCellCode()),
        asymmetric_(AsymmetricInputs(node)),
        input_(node, kRnnWeights),
        recurrent_(node, kRnnRecurrent) {}

  size_t ScratchBytes(const RnnSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * RowBytes(ChunkSteps(spec, cells()));
  }

  void Run(const Node& node, const RnnSpec& spec, std::byte* scratch, uint32_t threads) const override {
    for (const HybridMatrix* matrix : {&input_, &recurrent_}) matrix->PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, cells()));
    s.initial = s.final_state = StateMemory<float>(node, kRnnState, 1);
    const auto* const bias = node.in(kRnnBias).data<const float>();
    ForRowGroups(s, s.batch * s.steps * s.cells * (s.inputs + s.cells),
                 [&](size_t begin, size_t end, bool split) {
                   RunRows(spec, s, bias, scratch + begin * RowBytes(s.chunk_steps), begin, end, split);
                 });
  }

 private:
  size_t cells() const { return input_.layout().n; }
  // Scratch of a row: the quantized inputs and their products of a chunk, and the quantized state.
  size_t RowBytes(size_t chunk_steps) const {
    return HybridRows::Bytes(chunk_steps, input_.layout().k) + HybridRows::Bytes(1, cells()) +
           ScratchReader::Bytes(chunk_steps * cells() * sizeof(float));
  }

  void RunRows(const RnnSpec& spec, const Sequence& s, const float* bias, std::byte* scratch, size_t begin,
               size_t end, bool split) const {
    const size_t rows = end - begin;
    ScratchReader reader(scratch);
    HybridRows x(reader, s.chunk_steps * rows, s.inputs);
    HybridRows h(reader, rows, s.cells);
    auto* const sums = reader.Take<float>(s.chunk_steps * rows * s.cells);
    const auto project = [&](const InputRows& in) {
      x.Quantize(in, asymmetric_);
      MultiplySplit(input_, s, split, input_.TaskOf(x, bias, 0, sums, s.cells));
    };
    const auto step = [&](size_t, size_t in_chunk, const StepRows& at) {
      float* const of_step = sums + in_chunk * rows * s.cells;
      h.Quantize(InputRows{at.before, 1, rows, 0, at.before_stride, s.cells}, asymmetric_);
      recurrent_.Multiply(h, of_step, s.cells, of_step, s.cells);
      for (size_t r = 0; r < rows; ++r)
        code_.activate(spec.activation, s.cells, of_step + r * s.cells, at.after + r * at.after_stride);
    };
    RunSequence(s, begin, end, project, step);
  }

  const CellCode& code_;
  bool asymmetric_;
  HybridMatrix input_, recurrent_;
};

}  // namespace

std::unique_ptr<const RnnEngine> MakeHybridRnn(const Node& node) {
  return std::make_unique<const HybridRnn>(node);
}

}  // namespace fusebox::rnn
