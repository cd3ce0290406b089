// SPDX-License-Identifier: Apache-2.0
// Vector code of cells whose sums are plain matrix products: f32 rows times a packed matrix, and what GRU and
// RNN cells do with the sums. One table of functions per instruction set.
//
// The outputs of a matrix are packed in panels of `lanes`, four panels to a group:
// [group][column][panel][lane]; the last group has what is left. Every sum runs over its columns in order,
// whatever the tiling: results do not depend on threads or batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/rnn/cell/activation.h"

namespace fusebox::rnn {

inline constexpr size_t kGroupPanels = 4;
inline constexpr size_t kByteBlock = 64;  // no vector holds more bytes

// out[row] = start[row] + matrix * x[row]. Row r reads x + r / inner * outer_stride + r % inner *
// inner_stride.
struct PanelTask {
  const float* x;
  size_t inner, inner_stride, outer_stride;  // in elements
  size_t rows, columns, panels;
  const float* weights;
  const float* start;   // [panels][lane]; null: zeros
  size_t start_stride;  // 0: the same for every row
  float* out;           // [panels][lane] a row
  size_t out_stride;
};

// Elementwise work on the cells of `rows` rows. Sums are [gate][padded cells] a row.
struct GruTask {
  size_t rows, cells, padded;
  const float* x;  // the input's share: z, r, h
  size_t x_stride;
  float* h;  // the state's share: z, r, h, the first two overwritten by Reset
  size_t h_stride;
  const float* before;
  size_t before_stride;
  float* after;  // new state; for Reset: r * before
  size_t after_stride;
  CellActivation activation, gate_activation;
};

struct PanelCode {
  size_t lanes;
  // Groups [begin, end) only.
  void (*multiply)(const PanelTask&, size_t begin, size_t end);
  // GRU whose reset gate is applied to the product: everything after the products.
  void (*gru_after)(const GruTask&);
  // GRU whose reset gate is applied to the state: z and r * before; then, with h's third share, the new
  // state.
  void (*gru_reset)(const GruTask&);
  void (*gru_before)(const GruTask&);
  // out[i] = activation(sums[i]); in place if they are the same
  void (*activate)(CellActivation, size_t cells, const float* sums, float* out);
  // Of bytes: sums[i] = row i times x, exactly. Rows of at most 65536 columns lie one after another; behind x
  // are zeros up to a multiple of kByteBlock.
  void (*dots)(const int8_t* rows, size_t count, size_t columns, const int8_t* x, int32_t* sums);
  // The least and the most of the values and 0; NaN is passed over.
  void (*range)(const float* x, size_t n, float* low, float* high);
  // to[i] = zero + x[i] * inverse, the product rounded, then the sum to the nearest integer (halves away from
  // zero), within [least, 127]. NaN becomes `least`.
  void (*quantize)(const float* x, size_t n, float inverse, int32_t zero, int32_t least, int8_t* to);
};

// The code for every instruction set that this machine has, best first.
std::vector<const PanelCode*> PanelCodes();
const PanelCode& BestPanelCode();
// What BestPanelCode returns from now on; null: the best again. Not while instances are made.
void UsePanelCodeForTest(const PanelCode* code);

inline size_t RoundUp(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Puts row `output` of a matrix into its panel.
void PackPanelRow(size_t lanes, size_t panels, size_t output, const float* row, size_t columns, float* to);

}  // namespace fusebox::rnn
