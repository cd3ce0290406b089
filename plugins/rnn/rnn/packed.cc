// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fusebox/weights.hpp>

#include "plugins/rnn/cell/sequence.h"
#include "plugins/rnn/rnn/kernel.h"

namespace fusebox::rnn {

using namespace sdk;

namespace {

class PackedRnn final : public RnnEngine {
 public:
  PackedRnn(const RnnSpec& spec, const Node& node)
      : code_(BestCellCode()),
        inputs_(static_cast<size_t>(spec.inputs)),
        cells_(static_cast<size_t>(spec.cells)),
        padded_(LayoutOf(cells_, 0).padded()) {
    if (keeps_weights(node.host())) PackOnce(node);
  }

  size_t ScratchBytes(const RnnSpec& spec, uint32_t) const override {
    return static_cast<size_t>(spec.batch) * padded_ * ChunkSteps(spec, padded_) * sizeof(float);
  }

  void Run(const Node& node, const RnnSpec& spec, std::byte* scratch, uint32_t threads) const override {
    PackOnce(node);
    Sequence s(node, spec, threads, ChunkSteps(spec, padded_));
    float* const state = StateMemory<float>(node, kRnnState, 1);
    s.initial = s.final_state = state;
    ForRowGroups(s, s.batch * s.steps * cells_ * (inputs_ + cells_),
                 [&](size_t begin, size_t end, bool split) {
                   float* const sums = reinterpret_cast<float*>(scratch) + begin * padded_ * s.chunk_steps;
                   RunRows(spec, s, sums, begin, end, split);
                 });
  }

 private:
  math::F32Layout LayoutOf(size_t n, size_t k) const { return {code_.lanes, n, k}; }

  PackedWeights::Recipe RecipeOf(const Node& node) const {
    PackedWeights::Recipe recipe{.what = "rnn", .size = padded_ * (inputs_ + cells_ + 1) * sizeof(float)};
    recipe.numbers = {static_cast<int64_t>(code_.lanes), static_cast<int64_t>(inputs_),
                      static_cast<int64_t>(cells_)};
    for (const uint32_t i : {kRnnWeights, kRnnRecurrent, kRnnBias}) recipe.sources.push_back(node.in(i));
    return recipe;
  }

  void PackOnce(const Node& node) const {
    weights_.make_once([&] {
      return PackedWeights(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); });
    });
  }
  const float* input_weights() const { return weights_->data<float>(); }
  const float* recurrent() const { return input_weights() + padded_ * inputs_; }
  const float* bias() const { return recurrent() + padded_ * cells_; }

  void Pack(const Node& node, float* to) const {
    std::fill_n(to, padded_ * (inputs_ + cells_ + 1), 0.0F);
    const float* const w = node.in(kRnnWeights).data<const float>();
    const float* const r = node.in(kRnnRecurrent).data<const float>();
    for (size_t cell = 0; cell < cells_; ++cell) {
      math::PackF32Row(LayoutOf(padded_, inputs_), cell, w + cell * inputs_, to);
      math::PackF32Row(LayoutOf(padded_, cells_), cell, r + cell * cells_, to + padded_ * inputs_);
    }
    std::copy_n(node.in(kRnnBias).data<const float>(), cells_, to + padded_ * (inputs_ + cells_));
  }

  void RunRows(const RnnSpec& spec, const Sequence& s, float* sums, size_t begin, size_t end,
               bool split) const {
    const size_t rows = end - begin;
    const auto project = [&](const InputRows& in) {
      MultiplySplit(s, split,
                    {in,
                     {.layout = LayoutOf(padded_, inputs_), .weights = input_weights(), .start = bias()},
                     sums,
                     padded_});
    };
    const auto step = [&](size_t, size_t in_chunk, const StepRows& at) {
      float* const of_step = sums + in_chunk * rows * padded_;
      MultiplySplit(s, split,
                    {math::MatrixRows(at.before, rows, at.before_stride, cells_),
                     {.layout = LayoutOf(padded_, cells_),
                      .weights = recurrent(),
                      .start = of_step,
                      .start_stride = padded_},
                     of_step,
                     padded_});
      for (size_t r = 0; r < rows; ++r)
        code_.activate(spec.activation, cells_, of_step + r * padded_, at.after + r * at.after_stride);
    };
    RunSequence(s, begin, end, project, step);
  }

  const CellCode& code_;
  size_t inputs_, cells_;
  size_t padded_;  // cells, rounded up to whole panels
  LatePackedWeights weights_;
};

}  // namespace

std::unique_ptr<const RnnEngine> MakePackedRnn(const RnnSpec& spec, const Node& node) {
  return std::make_unique<const PackedRnn>(spec, node);
}

}  // namespace fusebox::rnn
