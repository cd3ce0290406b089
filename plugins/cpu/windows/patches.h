// SPDX-License-Identifier: Apache-2.0
// The input patches under the output pixels of a convolution.
#pragma once

#include <algorithm>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {

struct ConvGeometry {
  int64_t batch, in_height, in_width, in_channels;
  int64_t filter_height, filter_width, group_channels;
  int64_t out_height, out_width, out_channels;
  int64_t pad_top, pad_left;
  Slide height, width;

  ConvGeometry(const Node& n, const WindowOptions& w)
      : batch(n.in(0).dim(0)),
        in_height(n.in(0).dim(1)),
        in_width(n.in(0).dim(2)),
        in_channels(n.in(0).dim(3)),
        filter_height(n.in(1).dim(1)),
        filter_width(n.in(1).dim(2)),
        group_channels(n.in(1).dim(3)),
        out_height(OutputSize(in_height, filter_height, w.height, w.same)),
        out_width(OutputSize(in_width, filter_width, w.width, w.same)),
        out_channels(n.in(1).dim(0)),
        pad_top(PaddingBefore(in_height, filter_height, w.height, w.same)),
        pad_left(PaddingBefore(in_width, filter_width, w.width, w.same)),
        height(w.height),
        width(w.width) {}

  int64_t groups() const { return in_channels / group_channels; }
  int64_t patch() const { return filter_height * filter_width * group_channels; }
  int64_t pixels() const { return batch * out_height * out_width; }
  bool patches_are_pixels() const {
    return filter_height == 1 && filter_width == 1 && height.stride == 1 && width.stride == 1 &&
           groups() == 1;
  }
};

struct NoPad {
  int operator()(int64_t) const { return 0; }
};

// Copies the patches of pixels [first, first + count) for one group, with pad(image) for padding.
template <class T, class Pad = NoPad>
void CopyPatches(const ConvGeometry& g, const T* input, int64_t group, int64_t first, int64_t count,
                 T* patches, const Pad& pad = {}) {
  const int64_t channels = g.group_channels, row = g.filter_width * channels;
  const bool contiguous = g.width.dilation == 1 && channels == g.in_channels;
  for (int64_t pixel = first; pixel < first + count; ++pixel) {
    const int64_t ox = pixel % g.out_width, oy = pixel / g.out_width % g.out_height;
    const int64_t number = pixel / g.out_width / g.out_height, image = number * g.in_height;
    const T outside = static_cast<T>(pad(number));
    const int64_t x0 = ox * g.width.stride - g.pad_left, y0 = oy * g.height.stride - g.pad_top;
    const TapRange inside = InsideTaps(x0, g.filter_width, g.width.dilation, g.in_width);
    for (int64_t ky = 0; ky < g.filter_height; ++ky, patches += row) {
      const int64_t y = y0 + ky * g.height.dilation;
      if (y < 0 || y >= g.in_height || inside.first == inside.last) {
        std::fill_n(patches, row, outside);
        continue;
      }
      const T* source = input + ((image + y) * g.in_width + x0) * g.in_channels + group * channels;
      if (contiguous && inside.first == 0 && inside.last == g.filter_width) {
        CopyBytes(reinterpret_cast<std::byte*>(patches), reinterpret_cast<const std::byte*>(source),
                  static_cast<size_t>(row) * sizeof(T));
        continue;
      }
      std::fill_n(patches, inside.first * channels, outside);
      if (contiguous) {
        std::copy(source + inside.first * channels, source + inside.last * channels,
                  patches + inside.first * channels);
      } else {
        for (int64_t kx = inside.first; kx < inside.last; ++kx)
          std::copy_n(source + kx * g.width.dilation * g.in_channels, channels, patches + kx * channels);
      }
      std::fill(patches + inside.last * channels, patches + row, outside);
    }
  }
}

// The lines of the patches, [count][filter_height]: where they are in the input, or copied to `patches`.
template <class T>
void PointPatches(const ConvGeometry& g, const T* input, int64_t group, int64_t first, int64_t count,
                  T* patches, const T** lines) {
  if (g.patches_are_pixels()) {
    for (int64_t i = 0; i < count; ++i) lines[i] = input + (first + i) * g.in_channels;
    return;
  }
  const bool contiguous = g.width.dilation == 1 && g.group_channels == g.in_channels;
  const int64_t line = g.filter_width * g.group_channels, right = g.width.stride * g.in_channels;
  const int64_t below = g.height.dilation * g.in_width * g.in_channels;
  // Output pixels [begin, end) of a row have no padding beside them.
  const int64_t begin = (g.pad_left + g.width.stride - 1) / g.width.stride;
  const int64_t end = (g.in_width - g.filter_width + g.pad_left + g.width.stride) / g.width.stride;
  int64_t ox = first % g.out_width, oy = first / g.out_width % g.out_height;
  int64_t image = first / g.out_width / g.out_height;
  for (int64_t i = 0, run = 1; i < count; i += run) {
    const int64_t x = ox * g.width.stride - g.pad_left, y = oy * g.height.stride - g.pad_top;
    const int64_t last = y + (g.filter_height - 1) * g.height.dilation;
    const bool inside = contiguous && ox >= begin && ox < end && y >= 0 && last < g.in_height;
    run = inside ? std::min(count - i, end - ox) : 1;
    if (!inside) CopyPatches(g, input, group, first + i, 1, patches + i * g.patch());
    const T* source = inside ? input + ((image * g.in_height + y) * g.in_width + x) * g.in_channels
                             : patches + i * g.patch();
    const int64_t step = inside ? below : line;
    for (int64_t ky = 0; ky < g.filter_height; ++ky, source += step) {
      for (int64_t r = 0; r < run; ++r) lines[(i + r) * g.filter_height + ky] = source + r * right;
    }
    ox += run;
    if (ox < g.out_width) continue;
    ox = 0;
    if (++oy == g.out_height) oy = 0, ++image;
  }
}

}  // namespace fusebox::cpu
