// SPDX-License-Identifier: Apache-2.0
// The options of sliding windows over [batch, height, width, channels].
#pragma once

#include "plugins/xnnpack/values.h"

namespace fusebox::xnnpack {

struct Window {
  uint32_t stride_height, stride_width, dilation_height, dilation_width;
  bool same;
  uint32_t flags() const { return same ? XNN_FLAG_TENSORFLOW_SAME_PADDING : 0; }
};

inline uint32_t WindowSize(const Site& site, std::string_view key, int64_t otherwise) {
  const int64_t value = site.attrs().i64(key, otherwise);
  if (value < 1 || value > INT32_MAX)
    throw Reject{"ATTR", std::string(key) + " is " + std::to_string(value), "attr " + std::string(key)};
  return static_cast<uint32_t>(value);
}

inline Window ReadWindow(const Site& site) {
  const std::string_view padding = site.attrs().s("padding", "SAME");
  site.require(padding == "SAME" || padding == "VALID", "ATTR", "unknown padding", "attr padding");
  return {WindowSize(site, "stride_h", 0), WindowSize(site, "stride_w", 0),
          WindowSize(site, "dilation_h_factor", 1), WindowSize(site, "dilation_w_factor", 1),
          padding == "SAME"};
}

}  // namespace fusebox::xnnpack
