// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/rnn/packed.h"

#include <algorithm>

namespace fusebox::rnn {

PackedRnn::PackedRnn(const RnnSpec& spec, const Node& node)
    : code_(BestPanelCode()),
      activation_(spec.activation),
      inputs_(static_cast<size_t>(spec.inputs)),
      cells_(static_cast<size_t>(spec.cells)),
      panels_((cells_ + code_.lanes - 1) / code_.lanes),
      padded_(panels_ * code_.lanes),
      weights_(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); }),
      input_weights_(weights_.data<float>()),
      recurrent_(input_weights_ + padded_ * inputs_),
      bias_(recurrent_ + padded_ * cells_) {}

PackedWeights::Recipe PackedRnn::RecipeOf(const Node& node) const {
  PackedWeights::Recipe recipe{.what = "rnn", .size = padded_ * (inputs_ + cells_ + 1) * sizeof(float)};
  recipe.numbers = {static_cast<int64_t>(code_.lanes), static_cast<int64_t>(inputs_),
                    static_cast<int64_t>(cells_)};
  for (const uint32_t i : {kRnnWeights, kRnnRecurrent, kRnnBias}) recipe.sources.push_back(node.in(i));
  return recipe;
}

void PackedRnn::Pack(const Node& node, float* to) const {
  std::fill_n(to, padded_ * (inputs_ + cells_ + 1), 0.0F);
  const float* const w = node.in(kRnnWeights).data<const float>();
  const float* const r = node.in(kRnnRecurrent).data<const float>();
  for (size_t cell = 0; cell < cells_; ++cell) {
    PackPanelRow(code_.lanes, panels_, cell, w + cell * inputs_, inputs_, to);
    PackPanelRow(code_.lanes, panels_, cell, r + cell * cells_, cells_, to + padded_ * inputs_);
  }
  std::copy_n(node.in(kRnnBias).data<const float>(), cells_, to + padded_ * (inputs_ + cells_));
}

size_t PackedRnn::ChunkSteps(const RnnSpec& spec) const {
  return rnn::ChunkSteps(static_cast<size_t>(spec.batch), static_cast<size_t>(spec.steps), padded_);
}

size_t PackedRnn::ScratchBytes(const RnnSpec& spec, size_t chunk_steps) const {
  return static_cast<size_t>(spec.batch) * padded_ * chunk_steps * sizeof(float);
}

void PackedRnn::Run(const Call& call) const {
  const Sequence& s = call.sequence;
  if (s.batch == 0 || cells_ == 0) return;
  ForRows(call.host, call.threads, s.batch, s.batch * s.steps * cells_ * (inputs_ + cells_),
          [&](size_t begin, size_t end, bool split) { RunRows(call, begin, end, split); });
}

void PackedRnn::RunRows(const Call& call, size_t begin, size_t end, bool split) const {
  const size_t rows = end - begin;
  float* const sums = call.scratch + begin * padded_ * call.sequence.chunk_steps;
  PanelTask task{};
  task.panels = panels_;
  task.out_stride = padded_;
  const auto project = [&](PanelTask chunk) {
    chunk.panels = panels_;
    chunk.weights = input_weights_;
    chunk.start = bias_;
    chunk.out = sums;
    chunk.out_stride = padded_;
    MultiplyShared(code_, call.host, call.threads, split, chunk);
  };
  const auto step = [&](size_t number, const StepRows& at) {
    float* const of_step = sums + number * rows * padded_;
    task.x = at.before;
    task.inner = task.rows = rows;
    task.inner_stride = at.before_stride;
    task.columns = cells_;
    task.weights = recurrent_;
    task.start = task.out = of_step;
    task.start_stride = padded_;
    MultiplyShared(code_, call.host, call.threads, split, task);
    for (size_t r = 0; r < rows; ++r)
      code_.activate(activation_, cells_, of_step + r * padded_, at.after + r * at.after_stride);
  };
  RunSequence(call.sequence, begin, end, project, step);
}

}  // namespace fusebox::rnn
