// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "plugins/nn/ops/one_op.h"

namespace fusebox::nn {
namespace {

// Height and width.
using Pair = std::array<int64_t, 2>;

Pair PairOf(const Site& s, std::string_view key) {
  s.attr(key);
  const auto values = s.attrs().i64s(key);
  s.require(values.size() == 1 || values.size() == 2, "ATTR", "is no height and width",
            "attr " + std::string(key));
  return {values.front(), values.back()};
}

// The image that a composite reads.
class Image {
 public:
  Image(const Site& s, bool channels_first) : in_(s, 1), channels_first_(channels_first) {
    s.require(in_[0].rank() == 4, "RANK", "has rank " + std::to_string(in_[0].rank()) + ", expected 4",
              "operand 0");
    const int first = channels_first ? 2 : 1;
    size = {in_[0].dim(first), in_[0].dim(first + 1)};
    s.require(size[0] > 0 && size[1] > 0, "SHAPE", "has an unknown height or width", "operand 0");
  }
  const Operands& operands() const { return in_; }
  // Computes the result by f(image with the channels last).
  template <class F>
  void Rewrite(Build& b, const F& f) const {
    const Value x = in_.value(b, 0);
    b.result(0, channels_first_ ? b.transpose(f(b.transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2}) : f(x));
  }

  Pair size;

 private:
  Operands in_;
  bool channels_first_;
};

// Returns whether the pixels of a result with this size have one place in the input. Elsewhere, a factor that
// the composite does not have may have determined them.
bool IsMultiple(Pair size, Pair of) { return size[0] % of[0] == 0 && size[1] % of[1] == 0; }

void Resize(const Site& s, Build& b, std::string_view op, bool align_corners, bool half_pixel_centers) {
  const Image image(s, s.attrs().b("is_nchw_op", false));
  const Pair size = PairOf(s, "size");
  constexpr int64_t kMost = INT32_MAX;
  s.require(size[0] > 0 && size[1] > 0 && size[0] <= kMost && size[1] <= kMost, "ATTR", "is no size",
            "attr size");
  s.require(align_corners || IsMultiple(size, image.size), "ATTR",
            "is no multiple of " + std::to_string(image.size[0]) + "x" + std::to_string(image.size[1]) +
                ", so that the attributes do not determine the places of the pixels",
            "attr size");
  if (op == "RESIZE_BILINEAR") image.operands().RequireFloats(0);
  else image.operands().RequireUnscaled(0);
  image.Rewrite(b, [&](Value x) {
    const Value dims = b.i32({static_cast<int32_t>(size[0]), static_cast<int32_t>(size[1])});
    return b.builtin(op, {x, dims})
        .attr("align_corners", align_corners)
        .attr("half_pixel_centers", half_pixel_centers)[0];
  });
}

// A pooling window in one dimension. The first one begins `padding` before the input.
struct Window {
  int64_t in, kernel, stride, padding, out;

  bool IsValid() const { return padding == 0 && out == (in - kernel) / stride + 1; }
  // TFLite's rule for SAME: the smaller half of the missing elements comes first.
  bool IsSame() const {
    const int64_t missing = std::max<int64_t>(0, (out - 1) * stride + kernel - in);
    return out == (in + stride - 1) / stride && missing / 2 == padding;
  }
};

// As in PyTorch: a window that would begin behind the input is dropped.
int64_t WindowCount(int64_t in, int64_t kernel, int64_t stride, int64_t padding, bool ceil) {
  const int64_t free = in + 2 * padding - kernel;
  const int64_t count = (ceil ? free + stride - 1 : free) / stride + 1;
  return ceil && (count - 1) * stride >= in + padding ? count - 1 : count;
}

}  // namespace

void ResizeBilinear(const Site& s, Build& b) {
  s.attr("align_corners");
  const bool align_corners = s.attrs().b("align_corners");
  Resize(s, b, "RESIZE_BILINEAR", align_corners, !align_corners);
}

void ResizeNearest(const Site& s, Build& b) { Resize(s, b, "RESIZE_NEAREST_NEIGHBOR", false, true); }

// MIRROR_PAD pads any dimension, so there is no transpose.
void MirrorPad(const Site& s, Build& b) {
  const bool channels_first = s.attrs().b("is_nchw_op", false);
  const Operands in(s, 1);
  in.RequireUnscaled(0);
  s.require(in[0].rank() == 4, "RANK", "has rank " + std::to_string(in[0].rank()) + ", expected 4",
            "operand 0");
  const std::string_view mode = s.attrs().s("mode", "REFLECT");
  s.require(mode == "REFLECT" || mode == "SYMMETRIC", "ATTR", "is " + std::string(mode), "attr mode");
  s.attr("paddings");
  const auto paddings = s.attrs().i64s("paddings");
  s.require(paddings.size() == 4 &&
                std::ranges::all_of(paddings, [](int64_t p) { return p >= 0 && p <= INT32_MAX; }),
            "ATTR", "is not left, right, top and bottom", "attr paddings");
  std::array<int32_t, 8> pairs = {};
  for (size_t i = 0; i < 4; ++i) {
    const size_t dimension = (channels_first ? 3 : 2) - i / 2;
    pairs[2 * dimension + i % 2] = static_cast<int32_t>(paddings[i]);
  }
  constexpr int64_t kDims[] = {4, 2};
  b.result(
      0, b.builtin("MIRROR_PAD", {in.value(b, 0), b.constant<int32_t>(pairs, kDims)}).attr("mode", mode)[0]);
}

void AveragePool(const Site& s, Build& b) {
  const Image image(s, true);
  image.operands().RequireFloats(0);
  const Pair kernel = PairOf(s, "kernel_size");
  const Pair stride = PairOf(s, "stride");
  const Pair padding = PairOf(s, "padding");
  const bool ceil = s.attrs().b("ceil_mode", false);
  const bool counts_padding = s.attrs().b("count_include_pad", true);
  s.require(!s.attrs().has("divisor_override") || (s.attrs().kind("divisor_override") == FBX_ATTR_STR &&
                                                   s.attrs().s("divisor_override") == "py_None"),
            "ATTR", "has no counterpart in the op", "attr divisor_override");
  std::array<Window, 2> windows;
  for (size_t i = 0; i < 2; ++i) {
    constexpr int64_t kMost = 1 << 20;
    s.require(kernel[i] > 0 && stride[i] > 0 && padding[i] >= 0 && kernel[i] <= kMost && stride[i] <= kMost &&
                  2 * padding[i] <= kernel[i] && image.size[i] + 2 * padding[i] >= kernel[i],
              "ATTR", "is no window of the input", "attr kernel_size");
    windows[i] = {image.size[i], kernel[i], stride[i], padding[i],
                  WindowCount(image.size[i], kernel[i], stride[i], padding[i], ceil)};
  }
  // Counted padding is a part of the input.
  const bool pads = counts_padding && (padding[0] > 0 || padding[1] > 0);
  if (pads)
    for (Window& w : windows) w = {w.in + 2 * w.padding, w.kernel, w.stride, 0, w.out};
  const bool valid = std::ranges::all_of(windows, &Window::IsValid);
  s.require(valid || std::ranges::all_of(windows, &Window::IsSame), "ATTR",
            "makes windows that the op has neither with VALID nor with SAME", "attr padding");
  image.Rewrite(b, [&](Value x) {
    if (pads) {
      const auto h = static_cast<int32_t>(padding[0]);
      const auto w = static_cast<int32_t>(padding[1]);
      constexpr int64_t kDims[] = {4, 2};
      x = b.builtin("PAD",
                    {x, b.constant<int32_t>(std::array<int32_t, 8>{0, 0, h, h, w, w, 0, 0}, kDims)})[0];
    }
    return b.builtin("AVERAGE_POOL_2D", {x})
        .attr("padding", valid ? "VALID" : "SAME")
        .attr("stride_h", stride[0])
        .attr("stride_w", stride[1])
        .attr("filter_height", kernel[0])
        .attr("filter_width", kernel[1])[0];
  });
}

}  // namespace fusebox::nn
