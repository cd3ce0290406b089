// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/gru/packed.h"

#include <algorithm>

namespace fusebox::rnn {

// Scratch of the rows at hand.
struct PackedGru::Sums {
  size_t rows;
  const float* x;  // the input's share of this step
  float* h;        // the state's
  float* reset;    // r * state
};

PackedGru::PackedGru(const GruSpec& spec, const Node& node)
    : code_(BestPanelCode()),
      spec_(spec),
      inputs_(static_cast<size_t>(spec.inputs)),
      cells_(static_cast<size_t>(spec.cells)),
      gate_panels_((cells_ + code_.lanes - 1) / code_.lanes),
      padded_(gate_panels_ * code_.lanes),
      weights_(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); }),
      input_weights_(weights_.data<float>()),
      recurrent_(input_weights_ + kGruGates * padded_ * inputs_),
      candidate_(recurrent_ + 2 * padded_ * cells_),
      bias_(recurrent_ + kGruGates * padded_ * cells_),
      recurrent_bias_(bias_ + kGruGates * padded_) {}

PackedWeights::Recipe PackedGru::RecipeOf(const Node& node) const {
  PackedWeights::Recipe recipe{.what = "gru"};
  recipe.size = kGruGates * padded_ * (inputs_ + cells_ + 2) * sizeof(float);
  recipe.numbers = {static_cast<int64_t>(code_.lanes), spec_.inputs, spec_.cells, spec_.reset_after ? 1 : 0};
  for (uint32_t i = kGruWeights; i < kGruOperands; ++i) {
    if (node.has_in(i)) recipe.sources.push_back(node.in(i));
  }
  return recipe;
}

void PackedGru::Pack(const Node& node, float* to) const {
  std::fill_n(to, kGruGates * padded_ * (inputs_ + cells_ + 2), 0.0F);
  float* const recurrent = to + kGruGates * padded_ * inputs_;
  float* const candidate = recurrent + 2 * padded_ * cells_;
  float* const bias = recurrent + kGruGates * padded_ * cells_;
  const float* const w = node.in(kGruWeights).data<const float>();
  const float* const r = node.in(kGruRecurrent).data<const float>();
  const size_t joined = spec_.reset_after ? 3 : 2;
  for (size_t gate = 0; gate < kGruGates; ++gate) {
    for (size_t cell = 0; cell < cells_; ++cell) {
      const size_t row = gate * cells_ + cell, output = gate * padded_ + cell;
      PackPanelRow(code_.lanes, kGruGates * gate_panels_, output, w + row * inputs_, inputs_, to);
      if (gate < joined) {
        PackPanelRow(code_.lanes, joined * gate_panels_, output, r + row * cells_, cells_, recurrent);
      } else {
        PackPanelRow(code_.lanes, gate_panels_, cell, r + row * cells_, cells_, candidate);
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

size_t PackedGru::ChunkSteps(const GruSpec& spec) const {
  return rnn::ChunkSteps(static_cast<size_t>(spec.batch), static_cast<size_t>(spec.steps),
                         kGruGates * padded_);
}

// Per row: the input's share of each step of a chunk, the state's share of one, r * state.
size_t PackedGru::ScratchBytes(const GruSpec& spec, size_t chunk_steps) const {
  return static_cast<size_t>(spec.batch) * padded_ * (kGruGates * (chunk_steps + 1) + 1) * sizeof(float);
}

void PackedGru::Run(const Call& call) const {
  const Sequence& s = call.sequence;
  if (s.batch == 0 || cells_ == 0) return;
  const size_t work = s.batch * s.steps * kGruGates * cells_ * (inputs_ + cells_);
  ForRows(call.host, call.threads, s.batch, work,
          [&](size_t begin, size_t end, bool split) { RunRows(call, begin, end, split); });
}

void PackedGru::RunRows(const Call& call, size_t begin, size_t end, bool split) const {
  const size_t rows = end - begin, sums = kGruGates * padded_, chunk = call.sequence.chunk_steps;
  float* const z = call.scratch + begin * padded_ * (kGruGates * (chunk + 1) + 1);
  float* const h = z + rows * chunk * sums;
  const auto project = [&](PanelTask task) {
    task.panels = kGruGates * gate_panels_;
    task.weights = input_weights_;
    task.start = bias_;
    task.out = z;
    task.out_stride = sums;
    MultiplyShared(code_, call.host, call.threads, split, task);
  };
  const auto step = [&](size_t number, const StepRows& at) {
    Step(call, split, {rows, z + number * rows * sums, h, h + rows * sums}, at);
  };
  RunSequence(call.sequence, begin, end, project, step);
}

void PackedGru::Step(const Call& call, bool split, const Sums& sums, const StepRows& at) const {
  const size_t width = kGruGates * padded_;
  PanelTask task{at.before,
                 sums.rows,
                 at.before_stride,
                 0,
                 sums.rows,
                 cells_,
                 (spec_.reset_after ? 3 : 2) * gate_panels_,
                 recurrent_,
                 recurrent_bias_,
                 0,
                 sums.h,
                 width};
  MultiplyShared(code_, call.host, call.threads, split, task);
  GruTask cell{sums.rows,
               cells_,
               padded_,
               sums.x,
               width,
               sums.h,
               width,
               at.before,
               at.before_stride,
               at.after,
               at.after_stride,
               spec_.activation,
               spec_.gate_activation};
  if (spec_.reset_after) return code_.gru_after(cell);
  GruTask reset = cell;
  reset.after = sums.reset;
  reset.after_stride = padded_;
  code_.gru_reset(reset);
  task.x = sums.reset;
  task.inner_stride = padded_;
  task.panels = gate_panels_;
  task.weights = candidate_;
  task.start = nullptr;
  task.out = sums.h + 2 * padded_;
  MultiplyShared(code_, call.host, call.threads, split, task);
  code_.gru_before(cell);
}

}  // namespace fusebox::rnn
