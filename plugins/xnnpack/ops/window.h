// SPDX-License-Identifier: Apache-2.0
// Options of sliding windows over [batch, height, width, channels].
#pragma once

#include <algorithm>

#include "plugins/xnnpack/partition/values.h"

namespace fusebox::xnnpack {

struct Window {
  uint32_t stride_height, stride_width, dilation_height, dilation_width;
  bool same;
};

// Explicit, or computed by XNNPACK (flag).
struct Padding {
  uint32_t top = 0;
  uint32_t right = 0;
  uint32_t bottom = 0;
  uint32_t left = 0;
  uint32_t flags = 0;
};

inline uint32_t WindowSize(const NetworkNode& node, std::string_view key, int64_t otherwise) {
  const int64_t value = node.attrs().i64(key, otherwise);
  if (value < 1 || value > INT32_MAX)
    throw Reject{"ATTR", std::string(key) + " is " + std::to_string(value), "attr " + std::string(key)};
  return static_cast<uint32_t>(value);
}

inline Window ReadWindow(const NetworkNode& node) {
  const std::string_view padding = node.attrs().s("padding", "SAME");
  node.require(padding == "SAME" || padding == "VALID", "ATTR", "unknown padding", "attr padding");
  return {.stride_height = WindowSize(node, "stride_h", 0),
          .stride_width = WindowSize(node, "stride_w", 0),
          .dilation_height = WindowSize(node, "dilation_h_factor", 1),
          .dilation_width = WindowSize(node, "dilation_w_factor", 1),
          .same = padding == "SAME"};
}

// The padding for operand 0. XNNPACK computes SAME for any image size, but incorrectly if a stride is larger
// than the window: then the size must be known.
inline Padding PaddingOf(const NetworkNode& node, const Window& w, uint32_t height, uint32_t width) {
  if (!w.same) return {};
  const int64_t rows = int64_t{height - 1} * w.dilation_height + 1;
  const int64_t columns = int64_t{width - 1} * w.dilation_width + 1;
  if (w.stride_height <= rows && w.stride_width <= columns)
    return {.flags = XNN_FLAG_TENSORFLOW_SAME_PADDING};
  const auto total = [&](int dim, int64_t stride, int64_t extent) {
    const int64_t size = node.in(0).dim(dim);
    node.require(size > 0, "SHAPE", "SAME padding of images of unknown size");
    return static_cast<uint32_t>(std::max<int64_t>(0, (size - 1) / stride * stride + extent - size));
  };
  const uint32_t y = total(1, w.stride_height, rows);
  const uint32_t x = total(2, w.stride_width, columns);
  return {.top = y / 2, .right = x - x / 2, .bottom = y - y / 2, .left = x / 2, .flags = 0};
}

}  // namespace fusebox::xnnpack
