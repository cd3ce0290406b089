// SPDX-License-Identifier: Apache-2.0
#include "plugins/rnn/lstm/packed.h"

#include <algorithm>

namespace fusebox::rnn {
namespace {

// of projected input: enough for rows to share weights, little beside L3
constexpr size_t kChunkBytes = size_t{4} << 20;
// Below these a second thread costs more than it brings: multiplications of one parallel_for, and of one
// step.
constexpr size_t kMinParallelWork = size_t{1} << 18;
constexpr size_t kMinStepWork = size_t{1} << 19;

}  // namespace

PackedLstm::PackedLstm(const LstmSpec& spec, const Node& node)
    : code_(BestVectorCode()),
      inputs_(static_cast<size_t>(spec.inputs)),
      cells_(static_cast<size_t>(spec.cells)),
      blocks_((cells_ + code_.lanes - 1) / code_.lanes),
      per_column_(blocks_ * kGates * code_.lanes),
      weights_(node, RecipeOf(node), [&](void* to) { Pack(node, static_cast<float*>(to)); }),
      input_weights_(weights_.data<float>()),
      recurrent_weights_(input_weights_ + per_column_ * inputs_),
      bias_(recurrent_weights_ + per_column_ * cells_) {}

// The layout hangs on the width of the vectors alone; which target computes with it does not matter.
PackedWeights::Recipe PackedLstm::RecipeOf(const Node& node) const {
  PackedWeights::Recipe recipe{.what = "lstm", .size = per_column_ * (inputs_ + cells_ + 1) * sizeof(float)};
  recipe.numbers = {static_cast<int64_t>(code_.lanes), static_cast<int64_t>(inputs_),
                    static_cast<int64_t>(cells_)};
  recipe.sources.reserve(3 * kGates);
  for (const uint32_t first : {kInputWeights, kRecurrentWeights, kGateBias}) {
    for (uint32_t gate = 0; gate < kGates; ++gate) recipe.sources.push_back(node.in(first + gate));
  }
  return recipe;
}

void PackedLstm::Pack(const Node& node, float* to) const {
  // Lanes beyond the last cell are never packed, but multiplied.
  if (cells_ % code_.lanes != 0) std::fill_n(to, per_column_ * (inputs_ + cells_ + 1), 0.0F);
  PackMatrices(node, kInputWeights, inputs_, to);
  PackMatrices(node, kRecurrentWeights, cells_, to + per_column_ * inputs_);
  PackMatrices(node, kGateBias, 1, to + per_column_ * (inputs_ + cells_));
}

void PackedLstm::PackMatrices(const Node& node, uint32_t first, size_t columns, float* to) const {
  const size_t lanes = code_.lanes, width = kGates * lanes;
  for (size_t block = 0; block < blocks_; ++block) {
    const size_t second = block % 2, cells = std::min(lanes, cells_ - block * lanes);
    const size_t column_stride = second == 0 && block + 1 == blocks_ ? width : 2 * width;
    float* const at = to + (block - second) * columns * width + second * width;
    for (uint32_t gate = 0; gate < kGates; ++gate) {
      const float* const rows = node.in(first + gate).data<const float>() + block * lanes * columns;
      code_.pack({rows, cells, columns, at + gate * lanes, column_stride});
    }
  }
}

size_t PackedLstm::ChunkSteps(const LstmSpec& spec) const {
  const size_t bytes_per_step =
      static_cast<size_t>(spec.batch) * blocks_ * kGates * code_.lanes * sizeof(float);
  return std::clamp<size_t>(kChunkBytes / std::max<size_t>(bytes_per_step, 1), 1,
                            std::max<size_t>(spec.steps, 1));
}

size_t PackedLstm::ScratchBytes(const LstmSpec& spec, size_t chunk_steps) const {
  return chunk_steps * static_cast<size_t>(spec.batch) * blocks_ * kGates * code_.lanes * sizeof(float);
}

// Rows know nothing of each other, so with enough of them each thread takes its share through the whole
// sequence and never waits. A single row is split by cells, where a step is long enough to pay for meeting
// after it.
void PackedLstm::Run(const Call& call) const {
  const size_t batch = static_cast<size_t>(call.spec.batch), steps = static_cast<size_t>(call.spec.steps);
  if (batch == 0 || steps == 0 || cells_ == 0) return;
  const size_t work = batch * steps * kGates * cells_ * (inputs_ + cells_);
  if (call.threads < 2 || work < kMinParallelWork) return RunRows(call, 0, batch, false);
  if (batch < call.threads) return RunRows(call, 0, batch, true);
  const size_t grain = (batch + call.threads - 1) / call.threads;
  parallel_for(call.host, batch, grain,
               [&](size_t begin, size_t end, uint32_t) { RunRows(call, begin, end, false); });
}

void PackedLstm::RunRows(const Call& call, size_t begin, size_t end, bool split) const {
  const LstmSpec& spec = call.spec;
  const size_t batch = static_cast<size_t>(spec.batch), steps = static_cast<size_t>(spec.steps),
               rows = end - begin;
  const size_t rows_between_steps = spec.time_major ? batch : 1,
               rows_between_rows = spec.time_major ? 1 : steps;
  const size_t sums = blocks_ * kGates * code_.lanes;
  float* const z = call.z + begin * call.chunk_steps * sums;
  const float* const x = call.x + begin * rows_between_rows * inputs_;
  float* const output = call.output + begin * rows_between_rows * cells_;
  float* const h = call.h + begin * cells_;

  StepTask step{rows,
                cells_,
                blocks_,
                recurrent_weights_,
                nullptr,
                h,
                cells_,
                nullptr,
                rows_between_rows * cells_,
                call.c + begin * cells_,
                spec.activation,
                spec.gate_activation,
                static_cast<float>(spec.cell_clip),
                false};
  for (size_t t = 0; t < steps; ++t) {
    const size_t in_chunk = t % call.chunk_steps;
    if (in_chunk == 0) {
      Project(
          call,
          {x + t * rows_between_steps * inputs_, rows_between_steps * inputs_, rows_between_rows * inputs_,
           std::min(call.chunk_steps, steps - t), rows, inputs_, blocks_, input_weights_, bias_, z},
          split);
    }
    step.z = z + in_chunk * rows * sums;
    step.h_after = output + t * rows_between_steps * cells_;
    step.backwards = t % 2 == 1;
    Step(call, step, split);
    step.h_before = step.h_after;
    step.h_before_stride = step.h_after_stride;
  }
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(step.h_before + r * step.h_before_stride, cells_, h + r * cells_);
}

// Shares pairs of blocks out over the threads.
template <class F>
void PackedLstm::ForBlocks(const Call& call, const F& f) const {
  const size_t pairs = (blocks_ + 1) / 2, grain = (pairs + call.threads - 1) / call.threads;
  parallel_for(call.host, pairs, grain,
               [&](size_t begin, size_t end, uint32_t) { f(2 * begin, std::min(2 * end, blocks_)); });
}

void PackedLstm::Project(const Call& call, const ProjectionTask& task, bool split) const {
  const size_t work = task.steps * task.batch * kGates * cells_ * inputs_;
  if (!split || work < kMinParallelWork) return code_.project(task, 0, blocks_);
  ForBlocks(call, [&](size_t begin, size_t end) { code_.project(task, begin, end); });
}

void PackedLstm::Step(const Call& call, const StepTask& task, bool split) const {
  const size_t work = task.batch * kGates * cells_ * cells_;
  if (!split || work < kMinStepWork) return code_.step(task, 0, blocks_);
  ForBlocks(call, [&](size_t begin, size_t end) { code_.step(task, begin, end); });
}

}  // namespace fusebox::rnn
