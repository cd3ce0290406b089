// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/gru/engines.h"

namespace fusebox::rnn {
namespace {

std::vector<ByteTile> Gates(const GruSpec& spec, uint32_t operand, int64_t first, int64_t end) {
  std::vector<ByteTile> parts;
  for (int64_t gate = first; gate < end; ++gate) parts.push_back({operand, gate * spec.cells, spec.cells});
  return parts;
}

class HybridGru final : public GruEngine {
 public:
  HybridGru(const GruSpec& spec, const Node& node)
      : code_(BestCellCode()),
        asymmetric_(AsymmetricInputs(node)),
        input_(node, Gates(spec, kGruWeights, 0, kGruGates)),
        recurrent_(node, Gates(spec, kGruRecurrent, 0, spec.reset_after ? kGruGates : 2)),
        padded_(input_.layout().padded() / kGruGates) {
    if (!spec.reset_after) candidate_ = HybridMatrix(node, Gates(spec, kGruRecurrent, 2, kGruGates));
  }

  size_t ScratchBytes(const GruSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * RowBytes(ChunkSteps(spec, width())) + BiasBytes();
  }

  void Run(const Node& node, const GruSpec& spec, std::byte* scratch, uint32_t threads) const override {
    for (const HybridMatrix* matrix : {&input_, &recurrent_}) matrix->PackOnce(node);
    if (!spec.reset_after) candidate_.PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, width()));
    s.initial = node.in(kGruState).data<const float>();
    s.final_state = node.out(1).data<float>();
    ScratchReader reader(scratch);
    auto* const biases = reader.Take<float>(2 * width() + kMaxLanes);
    CopyGates(node, kGruBias, s.cells, biases);
    CopyGates(node, kGruRecurrentBias, s.cells, biases + width());
    ForRowGroups(s, s.batch * s.steps * kGruGates * s.cells * (s.inputs + s.cells),
                 [&](size_t begin, size_t end, bool split) {
                   RunRows(spec, s, biases, scratch + BiasBytes() + begin * RowBytes(s.chunk_steps), begin,
                           end, split);
                 });
  }

 private:
  struct Products {
    HybridRows& rows;  // quantized states
    const float* x;
    float* h;
    float* reset;  // r * state
  };

  size_t width() const { return kGruGates * padded_; }
  size_t BiasBytes() const { return ScratchReader::Bytes((2 * width() + kMaxLanes) * sizeof(float)); }
  // Scratch of a row: the quantized inputs and their products of a chunk; the quantized state, its products
  // and r * state. Vectors of cells are read beyond the end of the last.
  size_t RowBytes(size_t chunk_steps) const {
    return HybridRows::Bytes(chunk_steps, input_.layout().k) + HybridRows::Bytes(1, recurrent_.layout().k) +
           ScratchReader::Bytes(((chunk_steps + 1) * width() + padded_ + kMaxLanes) * sizeof(float));
  }

  // [gate][cells] to [gate][padded].
  void CopyGates(const Node& node, uint32_t operand, size_t cells, float* to) const {
    std::fill_n(to, width(), 0.0F);
    if (!node.has_in(operand)) return;
    for (size_t gate = 0; gate < kGruGates; ++gate)
      std::copy_n(node.in(operand).data<const float>() + gate * cells, cells, to + gate * padded_);
  }

  void RunRows(const GruSpec& spec, const Sequence& s, const float* biases, std::byte* scratch, size_t begin,
               size_t end, bool split) const {
    const size_t rows = end - begin;
    ScratchReader reader(scratch);
    HybridRows inputs(reader, s.chunk_steps * rows, s.inputs);
    HybridRows states(reader, rows, s.cells);
    float* const x = reader.Take<float>(((s.chunk_steps + 1) * width() + padded_) * rows + kMaxLanes);
    float* const h = x + s.chunk_steps * rows * width();
    const auto project = [&](const InputRows& in) {
      inputs.Quantize(in, asymmetric_);
      MultiplySplit(input_, s, split, input_.TaskOf(inputs, biases, 0, x, width()));
    };
    const auto step = [&](size_t, size_t in_chunk, const StepRows& at) {
      Step(spec, s, biases + width(), {states, x + in_chunk * rows * width(), h, h + rows * width()}, at,
           rows);
    };
    RunSequence(s, begin, end, project, step);
  }

  void Step(const GruSpec& spec, const Sequence& s, const float* bias, const Products& products,
            const StepRows& at, size_t rows) const {
    products.rows.Quantize(InputRows{at.before, 1, rows, 0, at.before_stride, s.cells}, asymmetric_);
    recurrent_.Multiply(products.rows, bias, 0, products.h, width());
    const GruTask cell{
        rows,      s.cells,          padded_,  products.x,      width(),         products.h,          width(),
        at.before, at.before_stride, at.after, at.after_stride, spec.activation, spec.gate_activation};
    if (spec.reset_after) return code_.gru_after(cell);
    GruTask reset = cell;
    reset.after = products.reset;
    reset.after_stride = padded_;
    code_.gru_reset(reset);
    products.rows.Quantize(InputRows{products.reset, 1, rows, 0, padded_, s.cells}, asymmetric_);
    candidate_.Multiply(products.rows, nullptr, 0, products.h + 2 * padded_, width());
    code_.gru_before(cell);
  }

  const CellCode& code_;
  bool asymmetric_;
  HybridMatrix input_, recurrent_, candidate_;
  size_t padded_;  // cells, rounded up to whole panels
};

}  // namespace

std::unique_ptr<const GruEngine> MakeHybridGru(const GruSpec& spec, const Node& node) {
  return std::make_unique<const HybridGru>(spec, node);
}

}  // namespace fusebox::rnn
