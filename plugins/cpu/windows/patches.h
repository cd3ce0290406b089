// SPDX-License-Identifier: Apache-2.0
// The input patches under the output pixels of a convolution over images or volumes.
#pragma once

#include <algorithm>
#include <span>

#include "plugins/cpu/elements/move.h"
#include "plugins/cpu/windows/window.h"

namespace fusebox::cpu {

// One spatial dimension: `taps` of the filter at `out` places of `in` elements.
struct ConvAxis {
  int64_t in, taps, out, before;  // `before`: padding before the first element
  Slide slide;

  static ConvAxis Of(int64_t in, int64_t taps, const Slide& slide, bool same) {
    return {in, taps, OutputSize(in, taps, slide, same), PaddingBefore(in, taps, slide, same), slide};
  }

  // Returns the element under the first tap at this place.
  int64_t origin(int64_t place) const { return place * slide.stride - before; }
  bool holds(int64_t element) const { return element >= 0 && element < in; }
  // The places [first_whole(), end_whole()) have no padding under them.
  int64_t first_whole() const { return (before + slide.stride - 1) / slide.stride; }
  int64_t end_whole() const { return (in - Extent(taps, slide) + before + slide.stride) / slide.stride; }
};

// The input is [batch, depth, height, width, channels]; an image has a depth of 1.
struct ConvGeometry {
  int64_t batch, in_channels, group_channels, out_channels;
  ConvAxis depth, height, width;

  int64_t groups() const { return in_channels / group_channels; }
  int64_t lines() const { return depth.taps * height.taps; }  // of a patch
  int64_t line() const { return width.taps * group_channels; }
  int64_t patch() const { return lines() * line(); }
  int64_t image() const { return depth.out * height.out * width.out; }  // its output pixels
  int64_t pixels() const { return batch * image(); }
  bool patches_are_pixels() const {
    return lines() == 1 && width.taps == 1 && depth.slide.stride == 1 && height.slide.stride == 1 &&
           width.slide.stride == 1 && groups() == 1;
  }
  bool lines_are_contiguous() const { return width.slide.dilation == 1 && group_channels == in_channels; }
  // Returns the offset of an element of a channel in the input. The place may lie outside, beside a line.
  int64_t offset(int64_t image, int64_t z, int64_t y, int64_t x) const {
    return (((image * depth.in + z) * height.in + y) * width.in + x) * in_channels;
  }
};

// An output pixel.
struct ConvPixel {
  int64_t x, y, z, image;

  ConvPixel(const ConvGeometry& g, int64_t number)
      : x(number % g.width.out),
        y(number / g.width.out % g.height.out),
        z(number / g.width.out / g.height.out % g.depth.out),
        image(number / g.image()) {}

  // By at most what is left of the line of pixels.
  void Advance(const ConvGeometry& g, int64_t count) {
    x += count;
    if (x < g.width.out) return;
    x = 0;
    if (++y < g.height.out) return;
    y = 0;
    if (++z < g.depth.out) return;
    z = 0;
    ++image;
  }
};

// Copies the patch of a pixel for one group, with `pad` outside.
template <class T>
[[gnu::always_inline]] inline void CopyPatch(const ConvGeometry& g, const T* input, int64_t group,
                                             const ConvPixel& pixel, T pad, T* to) {
  const int64_t channels = g.group_channels;
  const int64_t x0 = g.width.origin(pixel.x);
  const TapRange inside = InsideTaps(x0, g.width.taps, g.width.slide.dilation, g.width.in);
  const bool contiguous = g.lines_are_contiguous();
  const bool whole = contiguous && inside.first == 0 && inside.last == g.width.taps;
  for (int64_t kz = 0; kz < g.depth.taps; ++kz) {
    const int64_t z = g.depth.origin(pixel.z) + kz * g.depth.slide.dilation;
    for (int64_t ky = 0; ky < g.height.taps; ++ky, to += g.line()) {
      const int64_t y = g.height.origin(pixel.y) + ky * g.height.slide.dilation;
      if (!g.depth.holds(z) || !g.height.holds(y) || inside.first == inside.last) {
        std::fill_n(to, g.line(), pad);
        continue;
      }
      const T* source = input + g.offset(pixel.image, z, y, x0) + group * channels;
      if (whole) {
        CopyBytes(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(source),
                  static_cast<size_t>(g.line()) * sizeof(T));
        continue;
      }
      std::fill_n(to, inside.first * channels, pad);
      if (contiguous) {
        std::copy(source + inside.first * channels, source + inside.last * channels,
                  to + inside.first * channels);
      } else {
        for (int64_t kx = inside.first; kx < inside.last; ++kx)
          std::copy_n(source + kx * g.width.slide.dilation * g.in_channels, channels, to + kx * channels);
      }
      std::fill(to + inside.last * channels, to + g.line(), pad);
    }
  }
}

struct NoPad {
  int operator()(int64_t) const { return 0; }
};

// Copies the patches of pixels [first, first + count) for one group, with pad(image) for padding.
template <class T, class Pad = NoPad>
void CopyPatches(const ConvGeometry& geometry, const T* input, int64_t group, int64_t first, int64_t count,
                 T* patches, const Pad& pad = {}) {
  const ConvGeometry g = geometry;  // bytes that are stored cannot change it
  ConvPixel pixel(g, first);
  for (int64_t i = 0; i < count; ++i, patches += g.patch(), pixel.Advance(g, 1))
    CopyPatch(g, input, group, pixel, static_cast<T>(pad(pixel.image)), patches);
}

// The lines of the patches, [count][lines]: where they are in the input, or copied to `patches`.
template <class T>
void PointPatches(const ConvGeometry& g, const T* input, int64_t group, int64_t first, int64_t count,
                  T* patches, const T** lines) {
  const int64_t right = g.width.slide.stride * g.in_channels;
  const int64_t begin = g.width.first_whole();
  const int64_t end = std::min(g.width.end_whole(), g.width.out);
  const auto whole = [](const ConvAxis& a, int64_t place) {
    return a.origin(place) >= 0 && a.origin(place) + (a.taps - 1) * a.slide.dilation < a.in;
  };
  ConvPixel pixel(g, first);
  for (int64_t i = 0, run = 1; i < count; i += run, pixel.Advance(g, run)) {
    const bool inside = g.lines_are_contiguous() && pixel.x >= begin && pixel.x < end &&
                        whole(g.height, pixel.y) && whole(g.depth, pixel.z);
    run = inside ? std::min(count - i, end - pixel.x) : 1;
    const T* const copy = patches + i * g.patch();
    if (!inside) CopyPatch(g, input, group, pixel, T(0), patches + i * g.patch());
    for (int64_t line = 0, kz = 0; kz < g.depth.taps; ++kz) {
      for (int64_t ky = 0; ky < g.height.taps; ++ky, ++line) {
        const int64_t z = g.depth.origin(pixel.z) + kz * g.depth.slide.dilation;
        const int64_t y = g.height.origin(pixel.y) + ky * g.height.slide.dilation;
        const T* const source =
            inside ? input + g.offset(pixel.image, z, y, g.width.origin(pixel.x)) : copy + line * g.line();
        for (int64_t r = 0; r < run; ++r) lines[(i + r) * g.lines() + line] = source + r * right;
      }
    }
  }
}

}  // namespace fusebox::cpu
