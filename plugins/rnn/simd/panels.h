// SPDX-License-Identifier: Apache-2.0
// Vector code of matrix products with packed f32 weights, and of the elementwise part of GRU and RNN cells.
// One table of functions per instruction set.
//
// The outputs of a matrix are packed in panels of `lanes`, four panels to a group:
// [group][column][panel][lane]; the last group has the remaining panels. Every sum runs over its columns in
// order for any tiling, so results do not depend on threads or batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/math/simd/lanes.h"
#include "plugins/math/simd/targets.h"

namespace fusebox::rnn {

using common::Activation;
using math::kMaxLanes;

inline constexpr size_t kGroupPanels = 4;

// Input vectors of some steps of some rows. Strides are in elements.
template <class T>
struct RowsOf {
  const T* x;
  size_t steps, rows;
  size_t step_stride, row_stride;
  size_t columns;  // length of a vector

  size_t count() const { return steps * rows; }
  const T* at(size_t i) const { return x + i / rows * step_stride + i % rows * row_stride; }
};
using InputRows = RowsOf<float>;

// out[i] = start[i] + matrix * in.at(i)
struct PanelTask {
  InputRows in;
  size_t panels;
  const float* weights;
  const float* start;   // [panels][lane]; null: zeros
  size_t start_stride;  // 0: the same for every row
  float* out;           // [panels][lane] a row
  size_t out_stride;
};

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

struct PanelCode {
  size_t lanes;
  // Groups [begin, end) only.
  void (*multiply)(const PanelTask&, size_t begin, size_t end);
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
std::vector<const PanelCode*> PanelCodes();
using PanelChoice = math::SimdChoice<PanelCode, PanelCodes>;
inline const PanelCode& BestPanelCode() { return PanelChoice::Best(); }
// Null: the best again.
inline void UsePanelCodeForTest(const PanelCode* code) { PanelChoice::for_test = code; }

inline size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Packs row `output` of a matrix into its panel.
void PackPanelRow(size_t lanes, size_t panels, size_t output, const float* row, size_t columns, float* to);

}  // namespace fusebox::rnn
