// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/gru/engines.h"

namespace fusebox::rnn {

using namespace sdk;

namespace {

class PackedGru final : public GruEngine {
 public:
  PackedGru(const GruSpec& spec, const Node& node)
      : code_(BestCellCode()),
        reset_after_(spec.reset_after),
        inputs_(static_cast<size_t>(spec.inputs)),
        cells_(static_cast<size_t>(spec.cells)),
        padded_(LayoutOf(cells_, 0).padded()) {
    if (keeps_weights(node.host())) PackOnce(node);
  }

  size_t ScratchBytes(const GruSpec& spec, uint32_t) const override {
    const size_t chunk_steps = ChunkSteps(spec, kGruGates * padded_);
    return static_cast<size_t>(spec.batch) * RowFloats(chunk_steps) * sizeof(float);
  }

  void Run(const Node& node, const GruSpec& spec, std::byte* scratch, uint32_t threads) const override {
    PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, kGruGates * padded_));
    s.initial = node.in(kGruState).data<const float>();
    s.final_state = node.out(1).data<float>();
    ForRowGroups(s, s.batch * s.steps * kGruGates * cells_ * (inputs_ + cells_),
                 [&](size_t begin, size_t end, bool split) {
                   float* const part = reinterpret_cast<float*>(scratch) + begin * RowFloats(s.chunk_steps);
                   RunRows(spec, s, part, begin, end, split);
                 });
  }

 private:
  // The products of one step of some rows.
  struct Products {
    const float* x;
    float* h;
    float* reset;  // r * state
  };

  // Scratch of a row: the input products of a chunk, the state products of a step, r * state.
  size_t RowFloats(size_t chunk_steps) const { return padded_ * (kGruGates * (chunk_steps + 1) + 1); }

  math::F32Layout LayoutOf(size_t n, size_t k) const { return {code_.lanes, n, k}; }
  // Returns the layout of the outputs of some gates, each rounded up to whole panels.
  math::F32Layout GatesLayout(size_t gates, size_t k) const { return LayoutOf(gates * padded_, k); }

  PackedWeights::Recipe RecipeOf(const Node& node) const {
    PackedWeights::Recipe recipe{.what = "gru"};
    recipe.size = kGruGates * padded_ * (inputs_ + cells_ + 2) * sizeof(float);
    recipe.numbers = {static_cast<int64_t>(code_.lanes), static_cast<int64_t>(inputs_),
                      static_cast<int64_t>(cells_), reset_after_ ? 1 : 0};
    for (uint32_t i = kGruWeights; i < kGruOperands; ++i) {
      if (node.has_in(i)) recipe.sources.push_back(node.in(i));
    }
    return recipe;
  }

  void PackOnce(const Node& node) const {
    weights_.make_once([&] {
      return PackedWeights(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); });
    });
  }
  const float* input_weights() const { return weights_->data<float>(); }
  const float* recurrent() const { return input_weights() + kGruGates * padded_ * inputs_; }
  const float* candidate() const { return recurrent() + 2 * padded_ * cells_; }
  const float* bias() const { return recurrent() + kGruGates * padded_ * cells_; }
  const float* recurrent_bias() const { return bias() + kGruGates * padded_; }

  // Input weights of all gates; recurrent weights of all gates (without reset_after: of z and r, then of h);
  // both biases.
  void Pack(const Node& node, float* to) const {
    std::fill_n(to, kGruGates * padded_ * (inputs_ + cells_ + 2), 0.0F);
    float* const recurrent = to + kGruGates * padded_ * inputs_;
    float* const candidate = recurrent + 2 * padded_ * cells_;
    float* const bias = recurrent + kGruGates * padded_ * cells_;
    const float* const w = node.in(kGruWeights).data<const float>();
    const float* const r = node.in(kGruRecurrent).data<const float>();
    const size_t joined = reset_after_ ? 3 : 2;
    for (size_t gate = 0; gate < kGruGates; ++gate) {
      for (size_t cell = 0; cell < cells_; ++cell) {
        const size_t row = gate * cells_ + cell;
        const size_t output = gate * padded_ + cell;
        math::PackF32Row(GatesLayout(kGruGates, inputs_), output, w + row * inputs_, to);
        if (gate < joined) {
          math::PackF32Row(GatesLayout(joined, cells_), output, r + row * cells_, recurrent);
        } else {
          math::PackF32Row(GatesLayout(1, cells_), cell, r + row * cells_, candidate);
        }
      }
      const auto copy = [&](uint32_t operand, float* at) {
        if (!node.has_in(operand)) return;
        std::copy_n(node.in(operand).data<const float>() + gate * cells_, cells_, at + gate * padded_);
      };
      copy(kGruBias, bias);
      copy(kGruRecurrentBias, bias + kGruGates * padded_);
    }
  }

  void RunRows(const GruSpec& spec, const Sequence& s, float* scratch, size_t begin, size_t end,
               bool split) const {
    const size_t rows = end - begin;
    const size_t width = kGruGates * padded_;
    float* const x = scratch;
    float* const h = x + rows * s.chunk_steps * width;
    const auto project = [&](const InputRows& in) {
      MultiplySplit(s, split,
                    {in,
                     {.layout = GatesLayout(kGruGates, inputs_), .weights = input_weights(), .start = bias()},
                     x,
                     width});
    };
    const auto step = [&](size_t, size_t in_chunk, const StepRows& at) {
      Step(spec, s, split, rows, {x + in_chunk * rows * width, h, h + rows * width}, at);
    };
    RunSequence(s, begin, end, project, step);
  }

  void Step(const GruSpec& spec, const Sequence& s, bool split, size_t rows, const Products& products,
            const StepRows& at) const {
    const size_t width = kGruGates * padded_;
    MultiplySplit(s, split,
                  {math::MatrixRows(at.before, rows, at.before_stride, cells_),
                   {.layout = GatesLayout(reset_after_ ? 3 : 2, cells_),
                    .weights = recurrent(),
                    .start = recurrent_bias()},
                   products.h,
                   width});
    GruTask cell{
        rows,      cells_,           padded_,  products.x,      width,           products.h,          width,
        at.before, at.before_stride, at.after, at.after_stride, spec.activation, spec.gate_activation};
    if (reset_after_) return code_.gru_after(cell);
    GruTask reset = cell;
    reset.after = products.reset;
    reset.after_stride = padded_;
    code_.gru_reset(reset);
    MultiplySplit(s, split,
                  {math::MatrixRows<float>(products.reset, rows, padded_, cells_),
                   {.layout = GatesLayout(1, cells_), .weights = candidate()},
                   products.h + 2 * padded_,
                   width});
    code_.gru_before(cell);
  }

  const CellCode& code_;
  bool reset_after_;
  size_t inputs_, cells_;
  size_t padded_;  // cells, rounded up to whole panels
  LatePackedWeights weights_;
};

}  // namespace

std::unique_ptr<const GruEngine> MakePackedGru(const GruSpec& spec, const Node& node) {
  return std::make_unique<const PackedGru>(spec, node);
}

}  // namespace fusebox::rnn
