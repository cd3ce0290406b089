// SPDX-License-Identifier: Apache-2.0
// Sums and maxima over the pixels of a window, per channel.
#pragma once

#include <cstdint>

namespace fusebox::cpu {

struct PoolWindow {
  const void* first;  // channel 0 of the window's first pixel
  int64_t height, width, row, channels;
  void* pixel;  // of the result
};

// Windows of more taps have sums that this code does not hold.
inline constexpr int64_t kMostPoolTaps = 4096;

struct PoolCode {
  // The window has at least one pixel.
  void (*average_floats)(const PoolWindow&);
  // NaN never wins a comparison.
  void (*max_floats)(const PoolWindow&);
  // Means of at most kMostPoolTaps bytes, rounded half away from zero. `flip`: 0x80 if they are signed, or 0.
  void (*average_bytes)(const PoolWindow&, uint8_t flip);
  void (*max_bytes)(const PoolWindow&, uint8_t flip);
};

const PoolCode& BestPoolCode();

}  // namespace fusebox::cpu
