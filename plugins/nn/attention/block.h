// SPDX-License-Identifier: Apache-2.0
// Attention of a block of query rows: softmax(scale * Q K^T + mask) V, key block by key block with a running
// maximum and sum (online softmax), so that only one tile of scores exists. Compiled once per target.
//
// Tiles are transposed: the query rows are the lanes of vectors. So the maximum and the sum need no reduction
// across lanes, and K and V are read in place, one element at a time, without packing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/math/simd/targets.h"

namespace fusebox::nn {

// Elements of K or V of one head, of `stride` elements from one key to the next, or, if it is transposed,
// from one feature to the next: then the keys of a feature are adjacent. Real value: scale * (stored - zero).
struct Cache {
  enum class Type { kF32, kF16, kI8 };
  const void* data;
  size_t stride, depth;
  Type type;
  float scale;  // kI8
  int32_t zero;
  bool transposed = false;  // V only
};

// Query heads that share a head of K and V are neighbors: row r is position r / group, head r % group.
struct AttentionBlock {
  const float* q;  // position 0, first head
  float* out;
  size_t q_stride, out_stride;  // elements from one position to the next
  size_t q_head, out_head;      // from one head to the next
  size_t group;
  size_t first, rows;  // rows: at most AttentionCode::rows
  Cache k, v;
  size_t keys;
  bool causal;  // a position sees the keys up to its own number
  // True if the body replaces hidden scores by the lowest number, instead of adding it. Both are the same if
  // the position sees a score above -inf.
  bool selects;
  const float* mask;                          // null: none; position 0, first head, key 0
  size_t mask_position, mask_head, mask_key;  // strides, 0 where it is broadcast
  bool mask_replaces;  // a mask that is not 0 becomes the score, instead of being added to it
  float hidden;        // keys whose mask is this or less are not read; kHiddenByMask for masks that add
  float scale;
  float cap;       // 0: none; else scores become cap * tanh(score / cap)
  float* scratch;  // ScratchFloats
};

struct AttentionCode {
  size_t rows;
  void (*attend)(const AttentionBlock&);
};

// Added to a score, this or less makes the weight of a key 0, unless all keys of the row have such scores.
constexpr float kHiddenByMask = -1e9f;
// So much below the largest score of a row, the weight of a key is 0.
constexpr float kWeightless = 200;

constexpr size_t kKeyBlock = 96;  // a multiple of the rows of a tile

// Floats of scratch memory of one block.
constexpr size_t ScratchFloats(size_t rows, size_t depth, size_t value_depth, bool converts) {
  return rows * (depth + value_depth + kKeyBlock + 3) + (converts ? kKeyBlock * (depth + value_depth) : 0);
}

// Best first.
std::vector<const AttentionCode*> AttentionCodes();
using AttentionSimd = math::SimdChoice<AttentionCode, AttentionCodes>;

}  // namespace fusebox::nn
