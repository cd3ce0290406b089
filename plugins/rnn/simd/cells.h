// SPDX-License-Identifier: Apache-2.0
// Vector code of the elementwise part of LSTM, GRU and RNN cells, and of minimal filtering. One table of
// functions per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/math/gemm/input.h"
#include "plugins/math/simd/lanes.h"
#include "plugins/math/simd/targets.h"

namespace fusebox::rnn {

using common::Activation;
using math::kMaxLanes;

using InputRows = math::StridedRows<float>;

// Elementwise work on the cells of `rows` rows. Sums are [gate][padded cells] a row.
struct GruTask {
  size_t rows, cells, padded;
  const float* x;  // products of the input: z, r, h
  size_t x_stride;
  float* h;  // products of the state: z, r, h; gru_reset overwrites the first two
  size_t h_stride;
  const float* before;
  size_t before_stride;
  float* after;  // new state; for gru_reset: r * before
  size_t after_stride;
  Activation activation, gate_activation;
};

// An LSTM cell after its products, on `count` elements. Sums are [gate i, f, g, o][cells] an element, and
// readable for a vector beyond the last.
struct LstmTask {
  size_t count, cells;
  const float* sums;
  size_t stride;
  float* c;  // [count][cells], updated
  float* h;  // [count][cells]
  Activation activation, gate_activation;
};

// Winograd's minimal filtering of kernels of one size: a block of points[0] x points[1] inputs yields
// outputs[0] x outputs[1] elements, with one product for each point. More points have larger rounding errors.
struct WinogradForm {
  int64_t kernel[2];
  size_t points[2], outputs[2];
  float most;  // of the inputs

  constexpr size_t planes() const { return points[0] * points[1]; }
};
inline constexpr WinogradForm kWinogradForms[] = {{{3, 3}, {4, 4}, {2, 2}, 64},
                                                  {{5, 5}, {6, 6}, {2, 2}, 8},
                                                  {{1, 3}, {1, 6}, {1, 4}, 8},
                                                  {{1, 5}, {1, 6}, {1, 2}, 8}};
inline constexpr size_t kWinogradFormCount = std::size(kWinogradForms);

// Transforms a block of inputs [channels] into its points: to[i * stride].
struct WinogradInTask {
  const float* x;
  size_t row_stride, channels;
  float* to;
  size_t stride;
};

// Adds the outputs of one block to the sums of its elements.
struct WinogradOutTask {
  const float* products;  // of the points, `stride` apart, [columns] each
  size_t stride, columns;
  float* sums;
  size_t row_stride;   // from one row of elements to the next; elements are `columns` apart
  size_t rows, width;  // elements; at most the block's
};

struct CellCode {
  size_t lanes;  // as many as the products (math::F32Kernels) of this machine have
  // GRU with reset_after: everything after the products.
  void (*gru_after)(const GruTask&);
  // GRU without reset_after: z and r * before; then, with the third product of the state, the new state.
  void (*gru_reset)(const GruTask&);
  void (*gru_before)(const GruTask&);
  void (*lstm)(const LstmTask&);
  // By form.
  void (*winograd_in[kWinogradFormCount])(const WinogradInTask&);
  void (*winograd_out[kWinogradFormCount])(const WinogradOutTask&);
  // True if no value is NaN or beyond +-bound.
  bool (*within)(const float* x, size_t n, float bound);
  // out[i] = activation(sums[i]); in place if they are the same
  void (*activate)(Activation, size_t cells, const float* sums, float* out);
};

// The code for every instruction set that this machine has, best first.
std::vector<const CellCode*> CellCodes();
using CellChoice = math::SimdChoice<CellCode, CellCodes>;
inline const CellCode& BestCellCode() { return CellChoice::Best(); }

inline size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

}  // namespace fusebox::rnn
