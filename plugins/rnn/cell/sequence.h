// SPDX-License-Identifier: Apache-2.0
// How the packed cells walk through time: the input's share of many steps is multiplied at once, in chunks
// that stay in the cache, then the steps follow each other.
#pragma once

#include <algorithm>
#include <cstddef>

#include <fusebox/base.hpp>

#include "plugins/rnn/simd/panels.h"

namespace fusebox::rnn {

struct Sequence {
  size_t batch, steps, inputs, cells;
  bool time_major;
  const float* x;        // [batch, steps, inputs], or [steps, batch, inputs]
  float* output;         // the same with cells
  const float* initial;  // [batch, cells]
  float* final_state;    // [batch, cells]; may be `initial`
  size_t chunk_steps;
};

// Where one step of some rows reads the state and writes the next.
struct StepRows {
  const float* before;
  size_t before_stride;
  float* after;
  size_t after_stride;
};

inline size_t ChunkSteps(size_t batch, size_t steps, size_t floats_per_row) {
  constexpr size_t kChunkBytes = size_t{4} << 20;
  const size_t bytes = std::max<size_t>(batch * floats_per_row * sizeof(float), 1);
  return std::clamp<size_t>(kChunkBytes / bytes, 1, std::max<size_t>(steps, 1));
}

// All steps of the rows [begin, end). project(PanelTask with x and rows set) has to yield the sums of a chunk
// as [step][row]; step(number in the chunk, StepRows) goes one step.
template <class Project, class Step>
void RunSequence(const Sequence& s, size_t begin, size_t end, const Project& project, const Step& step) {
  const size_t rows = end - begin;
  const size_t between_steps = s.time_major ? s.batch : 1, between_rows = s.time_major ? 1 : s.steps;
  StepRows at{s.initial + begin * s.cells, s.cells, nullptr, between_rows * s.cells};
  for (size_t t = 0; t < s.steps; ++t) {
    const size_t in_chunk = t % s.chunk_steps;
    if (in_chunk == 0) {
      PanelTask task{};
      task.x = s.x + (begin * between_rows + t * between_steps) * s.inputs;
      task.inner = rows;
      task.inner_stride = between_rows * s.inputs;
      task.outer_stride = between_steps * s.inputs;
      task.rows = std::min(s.chunk_steps, s.steps - t) * rows;
      task.columns = s.inputs;
      project(task);
    }
    at.after = s.output + (begin * between_rows + t * between_steps) * s.cells;
    step(in_chunk, at);
    at.before = at.after;
    at.before_stride = at.after_stride;
  }
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(at.before + r * at.before_stride, s.cells, s.final_state + (begin + r) * s.cells);
}

// Multiplies with the groups shared out over the threads, where `split` and the work pays for meeting after
// it.
inline void MultiplyShared(const PanelCode& code, const fbx_host* host, uint32_t threads, bool split,
                           const PanelTask& task) {
  constexpr size_t kMinWork = size_t{1} << 18;  // multiplications below which a second thread brings nothing
  const size_t groups = (task.panels + kGroupPanels - 1) / kGroupPanels;
  if (!split || task.rows * task.columns * task.panels * code.lanes < kMinWork)
    return code.multiply(task, 0, groups);
  parallel_for(host, groups, (groups + threads - 1) / threads,
               [&](size_t begin, size_t end, uint32_t) { code.multiply(task, begin, end); });
}

// Rows know nothing of each other: with enough of them each thread takes its share through the whole sequence
// and never waits; fewer are split within a step. run(begin, end, split).
template <class Run>
void ForRows(const fbx_host* host, uint32_t threads, size_t batch, size_t work, const Run& run) {
  constexpr size_t kMinWork = size_t{1} << 18;
  if (threads < 2 || work < kMinWork) return run(0, batch, false);
  if (batch < threads) return run(0, batch, true);
  parallel_for(host, batch, (batch + threads - 1) / threads,
               [&](size_t begin, size_t end, uint32_t) { run(begin, end, false); });
}

}  // namespace fusebox::rnn
