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
#include <vector>

#include "plugins/common/activation.h"
#include "plugins/common/simd_targets.h"

namespace fusebox::rnn {

using common::Activation;

inline constexpr size_t kMaxLanes = 16;
inline constexpr size_t kGroupPanels = 4;

// Input vectors of some steps of some rows. Strides are in elements.
struct InputRows {
  const float* x;
  size_t steps, rows;
  size_t step_stride, row_stride;
  size_t columns;  // length of a vector

  size_t count() const { return steps * rows; }
  const float* at(size_t i) const { return x + i / rows * step_stride + i % rows * row_stride; }
};

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

// Adds the outputs of one block to the sums of up to 2x2 elements.
struct WinogradOutTask {
  const float* products;  // 16 of them, `stride` apart, [columns] each
  size_t stride, columns;
  float* sums;
  size_t row_stride;  // from one row of elements to the next; elements are `columns` apart
  size_t rows, width;
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
  // A block of 4x4 inputs [channels], for 16 products: to[i * stride].
  void (*winograd_in)(const float* x, size_t row_stride, size_t channels, float* to, size_t stride);
  void (*winograd_out)(const WinogradOutTask&);
  // True if no value is NaN or beyond +-bound.
  bool (*within)(const float* x, size_t n, float bound);
  // out[i] = activation(sums[i]); in place if they are the same
  void (*activate)(Activation, size_t cells, const float* sums, float* out);
};

// The code for every instruction set that this machine has, best first.
std::vector<const PanelCode*> PanelCodes();
using PanelChoice = common::SimdChoice<PanelCode, PanelCodes>;
inline const PanelCode& BestPanelCode() { return PanelChoice::Best(); }
// Null: the best again.
inline void UsePanelCodeForTest(const PanelCode* code) { PanelChoice::for_test = code; }

inline size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Packs row `output` of a matrix into its panel.
void PackPanelRow(size_t lanes, size_t panels, size_t output, const float* row, size_t columns, float* to);

}  // namespace fusebox::rnn
