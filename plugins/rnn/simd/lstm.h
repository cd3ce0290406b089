// SPDX-License-Identifier: Apache-2.0
// The vector code of the f32 cell with four gates and nothing optional, for the best instruction set at hand.
//
// Cells are handled in blocks of `lanes`. Weights are packed [pair of blocks][column][block][gate][lane] (the
// last of an odd number of blocks [column][gate][lane]), biases and the sums of a row [block][gate][lane], so
// that one pass through memory yields all that a pair of blocks needs; cells beyond the last are zeros. Every
// sum runs over its columns in order, whatever the tiling: results do not depend on threads or batch.
#pragma once

#include <cstddef>
#include <vector>

#include "plugins/rnn/lstm/spec.h"

namespace fusebox::rnn {

inline constexpr size_t kMaxLanes = 16;

// Sums of the input's share for `steps` steps of `batch` rows: z[step][row] = bias + W x[step][row].
struct ProjectionTask {
  const float* x;
  size_t step_stride, row_stride;  // of x, in elements
  size_t steps, batch, inputs, blocks;
  const float* weights;
  const float* bias;
  float* z;
};

// One step of `batch` rows.
struct StepTask {
  size_t batch, cells, blocks;
  const float* weights;
  const float* z;  // [batch][blocks][gate][lane]
  const float* h_before;
  size_t h_before_stride;
  float* h_after;  // not h_before
  size_t h_after_stride;
  float* c;  // [batch][cells], updated
  CellActivation activation, gate_activation;
  float cell_clip;  // 0: none
  bool backwards;   // through the blocks: what the step before left in the cache is used first
};

// One gate of one block: to[k * column_stride + cell] = rows[cell * columns + k].
struct PackTask {
  const float* rows;  // [cells][columns]
  size_t cells, columns;
  float* to;
  size_t column_stride;
};

// project and step work on the blocks [begin, end) only; begin is even, and so is end unless it is the last.
struct VectorCode {
  size_t lanes;
  void (*pack)(const PackTask&);
  void (*project)(const ProjectionTask&, size_t begin, size_t end);
  void (*step)(const StepTask&, size_t begin, size_t end);
};

// The code for every instruction set that this machine has, best first.
std::vector<const VectorCode*> VectorCodes();
const VectorCode& BestVectorCode();
// What BestVectorCode returns from now on; null: the best again. Not while instances are made.
void UseVectorCodeForTest(const VectorCode* code);

}  // namespace fusebox::rnn
