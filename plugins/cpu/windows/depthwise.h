// SPDX-License-Identifier: Apache-2.0
// The float depthwise convolution, where each channel has one filter.
#pragma once

#include <cstdint>

namespace fusebox::cpu {

// Output pixels of a row that have the same taps. Steps are in elements.
struct DepthwiseRun {
  const float* input;                       // under the first tap of the first pixel
  int64_t pixel_step, line_step, tap_step;  // to the next pixel, to the tap below and to the tap beside it
  int64_t lines, taps;                      // number of lines, and of taps in a line
  const float* weights;                     // of the first tap, [taps][channels]
  int64_t weights_step;                     // to the weights of the next line
  const float* bias;                        // by channel, or null
  int64_t pixels, channels;
  float lowest, highest;
  float* out;  // [pixels][channels]
};
void Depthwise(const DepthwiseRun& run);

}  // namespace fusebox::cpu
