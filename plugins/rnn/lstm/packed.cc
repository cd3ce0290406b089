// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/lstm/engines.h"

namespace fusebox::rnn {

using namespace sdk;

namespace {

class PackedLstm final : public LstmEngine {
 public:
  PackedLstm(const LstmSpec& spec, const Node& node)
      : code_(BestVectorCode()),
        inputs_(static_cast<size_t>(spec.inputs)),
        cells_(static_cast<size_t>(spec.cells)),
        blocks_((cells_ + code_.lanes - 1) / code_.lanes),
        sums_(blocks_ * kGates * code_.lanes) {
    if (keeps_weights(node.host())) PackOnce(node);
  }

  size_t ScratchBytes(const LstmSpec& spec, uint32_t) const override {
    return ChunkSteps(spec, sums_) * static_cast<size_t>(spec.batch) * sums_ * sizeof(float);
  }

  void Run(const Node& node, const LstmSpec& spec, std::byte* scratch, uint32_t threads) const override {
    PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, sums_));
    float* const h = StateMemory<float>(node, kOutputState, 1);
    float* const c = StateMemory<float>(node, kCellState, 2);
    s.initial = s.final_state = h;
    ForRowGroups(s, s.batch * s.steps * kGates * cells_ * (inputs_ + cells_),
                 [&](size_t begin, size_t end, bool split) {
                   float* const sums = reinterpret_cast<float*>(scratch) + begin * s.chunk_steps * sums_;
                   RunRows(spec, s, c + begin * cells_, sums, begin, end, split);
                 });
  }

 private:
  // The layout depends on the number of lanes only, not on the target.
  PackedWeights::Recipe RecipeOf(const Node& node) const {
    PackedWeights::Recipe recipe{.what = "lstm", .size = sums_ * (inputs_ + cells_ + 1) * sizeof(float)};
    recipe.numbers = {static_cast<int64_t>(code_.lanes), static_cast<int64_t>(inputs_),
                      static_cast<int64_t>(cells_)};
    recipe.sources.reserve(3 * kGates);
    for (const uint32_t first : {kInputWeights, kRecurrentWeights, kGateBias}) {
      for (uint32_t gate = 0; gate < kGates; ++gate) recipe.sources.push_back(node.in(first + gate));
    }
    return recipe;
  }

  void PackOnce(const Node& node) const {
    weights_.make_once([&] {
      return PackedWeights(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); });
    });
  }
  const float* input_weights() const { return weights_->data<float>(); }
  const float* recurrent_weights() const { return input_weights() + sums_ * inputs_; }
  const float* bias() const { return recurrent_weights() + sums_ * cells_; }

  void Pack(const Node& node, float* to) const {
    // Lanes beyond the last cell are not packed, but used in products.
    if (cells_ % code_.lanes != 0) std::fill_n(to, sums_ * (inputs_ + cells_ + 1), 0.0F);
    PackMatrices(node, kInputWeights, inputs_, to);
    PackMatrices(node, kRecurrentWeights, cells_, to + sums_ * inputs_);
    PackMatrices(node, kGateBias, 1, to + sums_ * (inputs_ + cells_));
  }

  void PackMatrices(const Node& node, uint32_t first, size_t columns, float* to) const {
    const size_t lanes = code_.lanes;
    const size_t width = kGates * lanes;
    for (size_t block = 0; block < blocks_; ++block) {
      const size_t second = block % 2;
      const size_t cells = std::min(lanes, cells_ - block * lanes);
      const size_t column_stride = second == 0 && block + 1 == blocks_ ? width : 2 * width;
      float* const at = to + (block - second) * columns * width + second * width;
      for (uint32_t gate = 0; gate < kGates; ++gate) {
        const float* const rows = node.in(first + gate).data<const float>() + block * lanes * columns;
        code_.pack({rows, cells, columns, at + gate * lanes, column_stride});
      }
    }
  }

  void RunRows(const LstmSpec& spec, const Sequence& s, float* c, float* sums, size_t begin, size_t end,
               bool split) const {
    const size_t rows = end - begin;
    const bool split_step = split && rows * kGates * cells_ * cells_ >= math::kAwakeWork;
    const size_t least = split_step ? math::kParallelWork : math::kLoneWork;
    const auto project = [&](const InputRows& in) {
      const bool pays = in.count() * kGates * cells_ * inputs_ >= least;
      const ProjectionTask task{in, blocks_, input_weights(), bias(), sums};
      ForBlocks(s, split && pays, [&](size_t first, size_t last) { code_.project(task, first, last); });
    };
    const auto step = [&](size_t t, size_t in_chunk, const StepRows& at) {
      const StepTask task{.batch = rows,
                          .cells = cells_,
                          .blocks = blocks_,
                          .weights = recurrent_weights(),
                          .z = sums + in_chunk * rows * sums_,
                          .h_before = at.before,
                          .h_before_stride = at.before_stride,
                          .h_after = at.after,
                          .h_after_stride = at.after_stride,
                          .c = c,
                          .activation = spec.activation,
                          .gate_activation = spec.gate_activation,
                          .cell_clip = static_cast<float>(spec.cell_clip),
                          .reverse = t % 2 == 1};
      ForBlocks(s, split_step, [&](size_t first, size_t last) { code_.step(task, first, last); });
    };
    RunSequence(s, begin, end, project, step);
  }

  // In pairs of blocks.
  template <class F>
  void ForBlocks(const Sequence& s, bool split, const F& f) const {
    ForParts(s, split, (blocks_ + 1) / 2,
             [&](size_t begin, size_t end) { f(2 * begin, std::min(2 * end, blocks_)); });
  }

  const VectorCode& code_;
  size_t inputs_, cells_, blocks_;
  size_t sums_;  // floats of the sums of a row, and of one packed column
  LatePackedWeights weights_;
};

}  // namespace

std::unique_ptr<const LstmEngine> MakePackedLstm(const LstmSpec& spec, const Node& node) {
  return std::make_unique<const PackedLstm>(spec, node);
}

}  // namespace fusebox::rnn
