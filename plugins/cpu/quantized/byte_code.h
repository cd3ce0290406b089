// SPDX-License-Identifier: Apache-2.0
// Vector code of 8-bit products (plugins/math/gemm/bytes.h) whose sums become 8-bit results. One table of
// functions per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/math/gemm/bytes.h"
#include "plugins/math/simd/fixed_point.h"
#include "plugins/math/simd/targets.h"

namespace fusebox::cpu {

using math::ByteLayout;
using math::ByteTask;

// result = clamp(rounded sum + zero), the low byte for either sign.
struct ByteRange {
  int32_t zero, lowest, highest;
  bool round_half_up;  // the second rounding; otherwise half away from zero
};

// Fixed-point factors of channels: as math::FixedPoint, member by member. Vectors of any width may be read
// from the last one.
struct ByteScales {
  std::vector<int32_t> values, left, right;
  // Halves of the bits that are shifted out to the right, added to the magnitudes of products: of all, and of
  // negative ones.
  std::vector<int32_t> half, half_below;
  bool any_left = false;
  // Both roundings and the zero point are one sum and one shift of 64 bits.
  bool in_64_bits = false;
  ByteRange range = {};

  ByteScales() = default;
  ByteScales(const std::vector<math::FixedPoint>& scales, const ByteRange& range);
  bool per_channel() const { return values.size() > kSlack + 1; }
  static constexpr size_t kSlack = 16;
  static constexpr int32_t kMostRight = 20;
  static constexpr int32_t kMostZeroPoint = 1024;
};

struct ByteResults {
  const ByteScales* scales;
  const int32_t* bias;  // by channel, added to sums; null: none
};

// Results of f32 by channel: sum * (scale of the row * scale of the channel) + bias, rounded after each
// product and sum, and clamped.
struct FloatResults {
  const float* scales;  // by channel, or one
  bool per_channel;
  const float* bias;  // by channel; null: none
  float lowest, highest;
};

// Results of some rows and channels: output i of the product is channel first_channel + i.
struct ByteStoreTask {
  ByteTask product;
  const ByteResults* results;
  size_t first_channel;
  uint8_t* out;  // of the first row and channel
  size_t out_stride;
};

// Output pixels of a depthwise convolution: channel c of a pixel is the sum of weights times the values of
// channel c under its taps, each minus `offset`.
struct ByteTaps {
  const uint8_t* const* lines;  // by line of the window: what is under the first tap of the first pixel
  size_t line_count, taps;      // lines of the window, and taps of each
  size_t together, step;        // pixels with separate weights, and taps from one to the next
  size_t pixel_step, tap_step;  // bytes to the next pixel, and to the tap beside
  size_t pixels;
  bool flipped;       // as in ByteTask
  ByteLayout layout;  // outputs: channels, columns: taps, in fours of each line, for each of `together`
  const int8_t* weights;
  const int32_t* sums;   // by channel, of the weights
  const int32_t* zeros;  // by channel, added to the weights; null: zeros
  int32_t offset;
  const ByteResults* results;  // null: sums
  void* out;                   // [pixels][channels] bytes, or sums of 32 bits
};

// z = clamp(f(x, y) + zero), in TFLite's fixed-point arithmetic. Sums and differences scale both operands,
// moved left by `shift` bits, before they are scaled to the result.
struct ByteBinary {
  enum class Op { kAdd, kSub, kMul, kSquaredDifference } op;
  bool is_signed;
  int32_t x_zero, y_zero, shift;
  math::FixedPoint x_scale, y_scale, z_scale;
  int32_t zero, lowest, highest;
};

struct ByteKernels {
  size_t lanes, unit;  // of packed weights; depthwise ones are in units of four
  math::ByteSigns signs;
  // Groups [begin, end) only. Rows are not flipped: their bytes are of the kind that `signs` states.
  void (*multiply)(const ByteTask&, int32_t* out, size_t out_stride, size_t begin, size_t end);
  // 4-bit weights do not use this: their sums are stored after multiply.
  void (*multiply_and_store)(const ByteStoreTask&, size_t begin, size_t end);
  // Results of `count` channels from their sums.
  void (*store)(const ByteResults&, size_t first_channel, size_t count, const int32_t* sums, uint8_t* out);
  void (*store_floats)(const FloatResults&, float scale, size_t first_channel, size_t count,
                       const int32_t* sums, float* out);
  // Copies rows, one behind another, and moves their bytes by 128: from one kind to the other. `to` may be
  // the rows themselves, if the stride is `columns`.
  void (*flip)(const void* rows, size_t count, size_t stride, size_t columns, void* to);
  // to[i] = sum of the bytes of row i, signed or not, minus `less`
  void (*sum_rows)(const void* rows, size_t count, size_t stride, size_t columns, bool is_unsigned,
                   int32_t less, int32_t* to);
  void (*depthwise)(const ByteTaps&);
  // The steps of x and y are 0 or 1.
  void (*binary)(const ByteBinary&, const uint8_t* x, int64_t x_step, const uint8_t* y, int64_t y_step,
                 uint8_t* z, size_t count);
  // out[i] = clamp(round(x[i] / scale) + zero) to the range of a byte, signed or not; halves away from zero;
  // NaN becomes the zero point.
  void (*quantize)(const float* x, size_t count, float scale, int32_t zero, bool is_signed, uint8_t* out);
};

// The code for every instruction set that this machine has, best first.
std::vector<const ByteKernels*> AllByteKernels();
using ByteChoice = math::SimdChoice<ByteKernels, AllByteKernels>;
inline const ByteKernels& BestByteKernels() { return ByteChoice::Best(); }
// Null: the best again.
inline void UseByteKernelsForTest(const ByteKernels* code) { ByteChoice::for_test = code; }

}  // namespace fusebox::cpu
