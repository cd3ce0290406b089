// SPDX-License-Identifier: Apache-2.0
// Vector code of the plain f32 LSTM cell: four gates, no peephole, projection or normalization.
//
// Cells are computed in blocks of `lanes`. Weights are packed [pair of blocks][column][block][gate][lane]
// (the last of an odd number of blocks [column][gate][lane]), biases and the sums of a row
// [block][gate][lane], so that a pair of blocks reads one contiguous stream. Cells beyond the last are zeros.
// Every sum runs over its columns in order for any tiling, so results do not depend on threads or batch.
#pragma once

#include <cstddef>
#include <vector>

#include "plugins/rnn/simd/cells.h"

namespace fusebox::rnn {

// In the order of the operands and of packed blocks.
enum Gate : uint32_t { kInGate, kForgetGate, kCellGate, kOutGate, kGates };

// z[i] = bias + W in.at(i)
struct ProjectionTask {
  InputRows in;
  size_t blocks;
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
  Activation activation, gate_activation;
  float cell_clip;  // 0: none
  bool reverse;     // order of blocks: starts with the weights that the previous step left in the cache
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
using VectorChoice = math::SimdChoice<VectorCode, VectorCodes>;
inline const VectorCode& BestVectorCode() { return VectorChoice::Best(); }
// Null: the best again.
inline void UseVectorCodeForTest(const VectorCode* code) { VectorChoice::for_test = code; }

}  // namespace fusebox::rnn
