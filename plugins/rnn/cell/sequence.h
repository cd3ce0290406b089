// SPDX-License-Identifier: Apache-2.0
// The loop over time of engines with packed weights: the products of the input are computed for many steps at
// once, in chunks that fit in the cache; then the steps run in order.
#pragma once

#include <algorithm>
#include <cstddef>

#include <fusebox/base.hpp>

#include "plugins/math/costs.h"
#include "plugins/math/gemm/run.h"
#include "plugins/rnn/cell/hybrid_product.h"
#include "plugins/rnn/cell/integer_matrix.h"
#include "plugins/rnn/cell/kernel.h"
#include "plugins/rnn/simd/cells.h"

namespace fusebox::rnn {

using namespace sdk;

// Steps whose input products (`sums` per row and step) are held at once.
template <class Sum = float>
size_t ChunkSteps(const SequenceSpec& s, size_t sums) {
  const size_t bytes = std::max<size_t>(static_cast<size_t>(s.batch) * sums * sizeof(Sum), 1);
  return std::clamp<size_t>(math::kStepsBytes / bytes, 1, std::max<size_t>(static_cast<size_t>(s.steps), 1));
}

// One run of an engine. `initial` and `final_state` are [batch, width] and may be the same memory.
template <class T>
struct SequenceOf {
  SequenceOf(const Node& node, const SequenceSpec& s, uint32_t max_threads, size_t steps_at_once)
      : host(node.host()),
        threads(max_threads),
        batch(static_cast<size_t>(s.batch)),
        steps(static_cast<size_t>(s.steps)),
        inputs(static_cast<size_t>(s.inputs)),
        cells(static_cast<size_t>(s.cells)),
        width(cells),
        chunk_steps(steps_at_once),
        step_distance(s.time_major ? batch : 1),
        row_distance(s.time_major ? 1 : steps),
        x(node.in(0).data<const T>()),
        output(node.out(0).data<T>()) {}

  const fbx_host* host;
  uint32_t threads;
  size_t batch, steps, inputs, cells;
  size_t width;  // of the output
  size_t chunk_steps;
  size_t step_distance, row_distance;  // between vectors of input and output
  const T* x;
  T* output;
  const T* initial = nullptr;
  T* final_state = nullptr;
};
using Sequence = SequenceOf<float>;

// The state before and after one step of some rows.
template <class T>
struct StepRowsOf {
  const T* before;
  size_t before_stride;
  T* after;
  size_t after_stride;
};
using StepRows = StepRowsOf<float>;

// Runs all steps of the rows [begin, end). project(StridedRows<T>) computes the input products of a chunk as
// [step][row]; step(t, index in the chunk, StepRowsOf<T>) runs one step.
template <class T, class Project, class Step>
void RunSequence(const SequenceOf<T>& s, size_t begin, size_t end, const Project& project, const Step& step) {
  const size_t rows = end - begin;
  StepRowsOf<T> at{s.initial + begin * s.width, s.width, nullptr, s.row_distance * s.width};
  for (size_t t = 0; t < s.steps; ++t) {
    const size_t vector = begin * s.row_distance + t * s.step_distance;
    const size_t in_chunk = t % s.chunk_steps;
    if (in_chunk == 0)
      project(math::StridedRows<T>{s.x + vector * s.inputs, std::min(s.chunk_steps, s.steps - t), rows,
                                   s.step_distance * s.inputs, s.row_distance * s.inputs, s.inputs});
    at.after = s.output + vector * s.width;
    step(t, in_chunk, at);
    at.before = at.after;
    at.before_stride = at.after_stride;
  }
  for (size_t r = 0; r < rows; ++r)
    std::copy_n(at.before + r * at.before_stride, s.width, s.final_state + (begin + r) * s.width);
}

// Rows are independent: with enough of them each thread runs its rows through the whole sequence without
// synchronization; otherwise each step is split. run(begin, end, split); `work` counts multiplications.
template <class T, class Run>
void ForRowGroups(const SequenceOf<T>& s, size_t work, const Run& run) {
  if (s.batch == 0 || s.width == 0) return;
  if (s.threads < 2 || work < math::kParallelWork) return run(0, s.batch, false);
  if (s.batch < s.threads) return run(0, s.batch, true);
  parallel_for(s.host, s.batch, (s.batch + s.threads - 1) / s.threads,
               [&](size_t begin, size_t end, uint32_t) { run(begin, end, false); });
}

// Calls f(begin, end) for parts of [0, count): one part, or if `split` one for each thread.
template <class T, class F>
void ForParts(const SequenceOf<T>& s, bool split, size_t count, const F& f) {
  if (!split) return f(size_t{0}, count);
  parallel_for(s.host, count, (count + s.threads - 1) / s.threads,
               [&](size_t begin, size_t end, uint32_t) { f(begin, end); });
}

inline void MultiplySplit(const Sequence& s, bool split, const math::F32Product& product) {
  const math::F32Layout& layout = product.task.layout;
  const bool pays = product.a.count() * layout.elements() >= math::kParallelWork;
  ForParts(s, split && pays, layout.groups(),
           [&](size_t begin, size_t end) { math::Multiply(product, begin, end); });
}

// multiply(begin, end) computes groups of a product.
template <class T, class Multiply>
void SplitGroups(const SequenceOf<T>& s, bool split, const ByteTask& product, const Multiply& multiply) {
  const bool pays = product.count * product.layout.k * product.layout.padded() >= math::kParallelWork;
  ForParts(s, split && pays, product.layout.groups(), multiply);
}

inline void MultiplySplit(const HybridMatrix& matrix, const Sequence& s, bool split, const ScaledTask& task) {
  SplitGroups(s, split, task.product,
              [&](size_t begin, size_t end) { matrix.code().multiply_scaled(task, begin, end); });
}

// Products of a chunk as [step][row]. The vectors of a row at all steps are equally far apart, and so are the
// vectors of a step in all rows: products run over the longer of the two.
inline void MultiplySplit(const IntegerMatrix& matrix, const SequenceOf<int8_t>& s, bool split,
                          const math::StridedRows<int8_t>& in, int16_t* z) {
  const size_t sums = matrix.layout().padded();
  const bool over_steps = in.steps >= in.rows;
  const size_t products = over_steps ? in.rows : in.steps;
  const size_t count = over_steps ? in.steps : in.rows;
  const size_t stride = over_steps ? in.step_stride : in.row_stride;
  const size_t out_stride = over_steps ? in.rows : 1;
  for (size_t i = 0; i < products; ++i) {
    const size_t first = i * (over_steps ? in.row_stride : in.step_stride);
    const size_t out = i * (over_steps ? 1 : in.rows);
    const WordTask task = matrix.TaskOf(in.x + first, count, stride, z + out * sums, out_stride * sums);
    SplitGroups(s, split, task.product,
                [&](size_t begin, size_t end) { matrix.code().multiply_words(task, begin, end); });
  }
}

}  // namespace fusebox::rnn
