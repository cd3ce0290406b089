// SPDX-License-Identifier: Apache-2.0
// Shared part of quantized convolutions, FULLY_CONNECTED and BATCH_MATMUL: their operands, and weights minus
// their zero points. Three forms:
//   bytes    i8 or u8 input, i8, u8 or i4 weights, i32 bias, result of the input's dtype (quantized_bytes.h)
//   hybrid   f32 input, quantized per invoke, i8, u8 or i4 weights, f32 bias and result (quantized_bytes.h)
//   words    i16 input, i8, u8, i4 or (some ops) i16 weights, i64 or i32 bias, i16 result (quantized_words.h)
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/cpu/quantized/quant.h"

namespace fusebox::cpu {

// Operand indices, and the dim of the weights with one scale per output channel.
struct ProductOperands {
  uint32_t input = 0;
  uint32_t weights = 1;
  uint32_t bias = 2;
  int channel_axis = 0;
  bool transposed = false;     // weights are [..., depth, channels] instead of [..., channels, depth]
  bool taps = false;           // transposed, with any number of dims before the channels
  bool by_tap = false;         // [channels, taps..., depth] become [taps..., channels, depth]
  bool wide_weights = false;   // accepts i16 weights
  bool exact_scales = false;   // multiply scales as doubles, like TFLite's i8 and i16 convolutions
  bool two_roundings = false;  // i16 sums without a bias are scaled like byte sums
  bool round_half_up = false;  // byte sums round half up, like TFLite's products but depthwise
  bool blocks = false;         // accepts scales per block of a row
};

// Returns whether a node is quantized, supported or not.
inline bool TakesQuantized(const Node& n, const ProductOperands& o) { return IsQuantized(n, o.weights); }
// Throws Reject.
void SupportsQuantized(const Node& n, const ProductOperands& o);
// For infer: throws Error if the bias does not match the channels.
void CheckQuantized(const Node& n, const ProductOperands& o, int64_t channels);

// Returns the factors of sums to results, one or one per channel. The scales are valid (WhyNoScales).
std::vector<FixedPoint> ResultFactors(const Node& n, const ProductOperands& o);

// Weights are used as [..., channels, depth]. T: int8_t or int16_t.
inline bool Rearranges(const ProductOperands& o) { return o.transposed || o.by_tap; }
template <class T>
void Rearrange(const Node& n, const ProductOperands& o, const T* from, T* to);
// Writes the weights minus their zero points. `scratch`: as many values, if they are rearranged.
void UnpackWeights(const Node& n, const ProductOperands& o, int16_t* to, int16_t* scratch);

}  // namespace fusebox::cpu
