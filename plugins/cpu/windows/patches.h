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

  // Elements from a tap to the next, if a window may have both inside.
  int64_t step() const { return std::min(slide.dilation, in); }
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
  // Elements of a patch that lie together in the input: lines, or else taps.
  int64_t segment() const { return lines_are_contiguous() ? line() : group_channels; }
  int64_t segments_of_line() const { return lines_are_contiguous() ? 1 : width.taps; }
  int64_t segments() const { return lines() * segments_of_line(); }
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
  [[gnu::always_inline]] void Advance(const ConvGeometry& g, int64_t count) {
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
  const int64_t line = g.line();
  const int64_t x0 = g.width.origin(pixel.x);
  const TapRange inside = InsideTaps(x0, g.width.taps, g.width.slide.dilation, g.width.in);
  const int64_t before = inside.first * channels;
  const int64_t end = inside.last * channels;
  const int64_t together = g.lines_are_contiguous() ? inside.last - inside.first : 1;  // taps
  for (int64_t kz = 0; kz < g.depth.taps; ++kz) {
    const int64_t z = g.depth.origin(pixel.z) + kz * g.depth.slide.dilation;
    for (int64_t ky = 0; ky < g.height.taps; ++ky, to += line) {
      const int64_t y = g.height.origin(pixel.y) + ky * g.height.slide.dilation;
      if (!g.depth.holds(z) || !g.height.holds(y) || before == end) {
        std::fill_n(to, line, pad);
        continue;
      }
      const T* const source = input + g.offset(pixel.image, z, y, x0) + group * channels;
      if (before > 0) std::fill_n(to, before, pad);
      for (int64_t kx = inside.first; kx < inside.last; kx += together)
        CopyBytes(reinterpret_cast<std::byte*>(to + kx * channels),
                  reinterpret_cast<const std::byte*>(source + kx * g.width.slide.dilation * g.in_channels),
                  static_cast<size_t>(together * channels) * sizeof(T));
      if (end < line) std::fill(to + end, to + line, pad);
    }
  }
}

// Steps and limits that all patches of a convolution share, computed once for many pixels.
struct PatchSteps {
  ConvGeometry g;  // a copy: bytes that are stored cannot change it
  int64_t line, lines;
  int64_t below, behind;  // elements of the input from a line to the next, and from a plane
  int64_t begin, end;     // output pixels of a line beside which there is no padding

  explicit PatchSteps(const ConvGeometry& geometry)
      : g(geometry),
        line(g.line()),
        lines(g.lines()),
        below(g.height.step() * g.width.in * g.in_channels),
        behind(g.depth.step() * g.height.in * g.width.in * g.in_channels),
        begin(g.width.first_whole()),
        end(std::min(g.width.end_whole(), g.width.out)) {}

  [[gnu::always_inline]] static bool Whole(const ConvAxis& a, int64_t place) {
    const int64_t origin = place * a.slide.stride - a.before;
    return origin >= 0 && origin + (a.taps - 1) * a.slide.dilation < a.in;
  }
  // Returns whether the pixel's patch lies inside of the input.
  [[gnu::always_inline]] bool Whole(const ConvPixel& p) const {
    return p.x >= begin && p.x < end && Whole(g.height, p.y) && Whole(g.depth, p.z);
  }
  template <class T>
  [[gnu::always_inline]] const T* Source(const T* input, const ConvPixel& p) const {
    return input + g.offset(p.image, g.depth.origin(p.z), g.height.origin(p.y), g.width.origin(p.x));
  }
};

struct NoPad {
  int operator()(int64_t) const { return 0; }
};

// Copies the patches of pixels [first, first + count) for one group, with pad(image) for padding.
template <class T, class Pad = NoPad>
void CopyPatches(const ConvGeometry& geometry, const T* input, int64_t group, int64_t first, int64_t count,
                 T* patches, const Pad& pad = {}) {
  const PatchSteps s(geometry);
  const auto size = static_cast<int64_t>(sizeof(T));
  const int64_t patch = s.lines * s.line;
  const int64_t right = s.g.width.slide.stride * s.g.in_channels;
  const bool contiguous = s.g.lines_are_contiguous();
  ConvPixel pixel(s.g, first);
  for (int64_t i = 0, run = 1; i < count; i += run, patches += run * patch, pixel.Advance(s.g, run)) {
    if (!contiguous || !s.Whole(pixel)) {
      run = 1;
      CopyPatch(s.g, input, group, pixel, static_cast<T>(pad(pixel.image)), patches);
      continue;
    }
    run = std::min(count - i, s.end - pixel.x);
    const T* plane = s.Source(input, pixel);
    T* to = patches;
    for (int64_t kz = 0; kz < s.g.depth.taps; ++kz, plane += s.behind) {
      const T* source = plane;
      for (int64_t ky = 0; ky < s.g.height.taps; ++ky, source += s.below, to += s.line)
        CopyEach(reinterpret_cast<const std::byte*>(source), right * size, reinterpret_cast<std::byte*>(to),
                 patch * size, run, static_cast<size_t>(s.line * size));
    }
  }
}

// Distances of the segments from the first element of a patch: one that lies inside of the input, and a copy.
struct PatchOffsets {
  ptrdiff_t* inside;  // [segments]
  ptrdiff_t* copied;  // [segments]

  void Set(const PatchSteps& s) const {
    const int64_t of_line = s.g.segments_of_line();
    const int64_t next = s.g.width.step() * s.g.in_channels;
    ptrdiff_t* to = inside;
    for (int64_t kz = 0; kz < s.g.depth.taps; ++kz)
      for (int64_t ky = 0; ky < s.g.height.taps; ++ky)
        for (int64_t kx = 0; kx < of_line; ++kx) *to++ = kz * s.behind + ky * s.below + kx * next;
    for (int64_t i = 0; i < s.g.segments(); ++i) copied[i] = i * s.g.segment();
  }
};

// The patches of some pixels as rows of A, and what is computed of them as rows of C: from the front those
// that lie inside of the input, from the back copies of the others.
template <class T>
struct PatchRows {
  const T** a;
  T** c;
  T* copies;     // [most][patch]
  int64_t most;  // at least 1
  struct Taken {
    int64_t inside, copied;
  };

  // Pixels from `first` on: `count`, or as many as there is room for copies. The result of pixel i is at
  // results + i * ldc. The copies are rows [count - copied, count).
  Taken Set(const PatchSteps& s, const T* input, int64_t group, int64_t first, int64_t count, T* results,
            int64_t ldc) const {
    const int64_t right = s.g.width.slide.stride * s.g.in_channels;
    input += group * s.g.group_channels;
    Taken taken{};
    ConvPixel pixel(s.g, first);
    for (int64_t i = 0, run = 1; i < count; i += run, pixel.Advance(s.g, run)) {
      T* const result = results + (first + i) * ldc;
      if (!s.Whole(pixel)) {
        if (taken.copied == most) return taken;
        run = 1;
        T* const copy = copies + taken.copied * s.lines * s.line;
        CopyPatch(s.g, input, 0, pixel, T(0), copy);
        ++taken.copied;
        a[count - taken.copied] = copy;
        c[count - taken.copied] = result;
        continue;
      }
      run = std::min(count - i, s.end - pixel.x);
      const T* const source = s.Source(input, pixel);
      for (int64_t r = 0; r < run; ++r, ++taken.inside) {
        a[taken.inside] = source + r * right;
        c[taken.inside] = result + r * ldc;
      }
    }
    return taken;
  }
};

}  // namespace fusebox::cpu
