// SPDX-License-Identifier: Apache-2.0
// Convolutions, held against their definition: a sum over taps, with the padding computed the textbook way.
#include <algorithm>
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

struct Spec {
  int64_t batch, height, width, in;          // input
  int64_t out, filter_height, filter_width;  // filter
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  const char* padding = "SAME";
  int groups = 1;
  bool bias = true;
};

struct Axis {
  int64_t out, before;
};
Axis Pad(int64_t in, int64_t taps, int stride, int dilation, const std::string& padding) {
  const int64_t extent = (taps - 1) * dilation + 1;
  if (padding == "VALID") return {in < extent ? 0 : (in - extent) / stride + 1, 0};
  const int64_t out = (in + stride - 1) / stride;
  return {out, std::max<int64_t>(0, (out - 1) * stride + extent - in) / 2};
}

std::string Name(const Spec& s) {
  return std::to_string(s.height) + "x" + std::to_string(s.width) + "x" + std::to_string(s.in) + " by " +
         std::to_string(s.filter_height) + "x" + std::to_string(s.filter_width) + "x" +
         std::to_string(s.out) + " " + s.padding;
}

std::vector<Attr> Options(const Spec& s) {
  return {{"padding", s.padding},
          {"stride_h", s.stride_h},
          {"stride_w", s.stride_w},
          {"dilation_h_factor", s.dilation_h},
          {"dilation_w_factor", s.dilation_w}};
}

size_t At(int64_t a, int64_t n1, int64_t b, int64_t n2, int64_t c, int64_t n3, int64_t d) {
  return static_cast<size_t>(((a * n1 + b) * n2 + c) * n3 + d);
}

void Conv(Cases& c, const Spec& s) {
  const int64_t group_in = s.in / s.groups, group_out = s.out / s.groups;
  const Data x = Random<float>({s.batch, s.height, s.width, s.in}, 1, -1, 1);
  const Data f = Random<float>({s.out, s.filter_height, s.filter_width, group_in}, 2, -1, 1),
             b = Random<float>({s.out}, 3);
  const std::vector<float> vx = As<float>(x), vf = As<float>(f), vb = As<float>(b);
  const Axis h = Pad(s.height, s.filter_height, s.stride_h, s.dilation_h, s.padding);
  const Axis w = Pad(s.width, s.filter_width, s.stride_w, s.dilation_w, s.padding);
  std::vector<float> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oy = 0; oy < h.out; ++oy)
      for (int64_t ox = 0; ox < w.out; ++ox)
        for (int64_t o = 0; o < s.out; ++o) {
          double sum = s.bias ? vb[static_cast<size_t>(o)] : 0;
          for (int64_t ky = 0; ky < s.filter_height; ++ky)
            for (int64_t kx = 0; kx < s.filter_width; ++kx) {
              const int64_t iy = oy * s.stride_h - h.before + ky * s.dilation_h,
                            ix = ox * s.stride_w - w.before + kx * s.dilation_w;
              if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
              for (int64_t i = 0; i < group_in; ++i)
                sum += static_cast<double>(
                           vx[At(n, s.height, iy, s.width, ix, s.in, o / group_out * group_in + i)]) *
                       vf[At(o, s.filter_height, ky, s.filter_width, kx, group_in, i)];
            }
          y.push_back(static_cast<float>(sum));
        }
  const Data want =
      y.empty() ? F32({s.batch, h.out, w.out, s.out}, {0}) : F32({s.batch, h.out, w.out, s.out}, y);
  c.push_back({.name = Name(s),
               .op = "CONV_2D",
               .operands = {x, f, s.bias ? b : Absent()},
               .attrs = Options(s),
               .results = {want},
               .atol = 1e-5,
               .rtol = 1e-5});
}

void Depthwise(Cases& c, const Spec& s) {
  const int64_t multiplier = s.out / s.in;
  const Data x = Random<float>({s.batch, s.height, s.width, s.in}, 1, -1, 1);
  const Data f = Random<float>({1, s.filter_height, s.filter_width, s.out}, 2, -1, 1),
             b = Random<float>({s.out}, 3);
  const std::vector<float> vx = As<float>(x), vf = As<float>(f), vb = As<float>(b);
  const Axis h = Pad(s.height, s.filter_height, s.stride_h, s.dilation_h, s.padding);
  const Axis w = Pad(s.width, s.filter_width, s.stride_w, s.dilation_w, s.padding);
  std::vector<float> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oy = 0; oy < h.out; ++oy)
      for (int64_t ox = 0; ox < w.out; ++ox)
        for (int64_t o = 0; o < s.out; ++o) {
          double sum = s.bias ? vb[static_cast<size_t>(o)] : 0;
          for (int64_t ky = 0; ky < s.filter_height; ++ky)
            for (int64_t kx = 0; kx < s.filter_width; ++kx) {
              const int64_t iy = oy * s.stride_h - h.before + ky * s.dilation_h,
                            ix = ox * s.stride_w - w.before + kx * s.dilation_w;
              if (iy < 0 || iy >= s.height || ix < 0 || ix >= s.width) continue;
              sum += static_cast<double>(vx[At(n, s.height, iy, s.width, ix, s.in, o / multiplier)]) *
                     vf[At(0, s.filter_height, ky, s.filter_width, kx, s.out, o)];
            }
          y.push_back(static_cast<float>(sum));
        }
  std::vector<Attr> options = Options(s);
  options.emplace_back("depth_multiplier", static_cast<int>(multiplier));
  c.push_back({.name = Name(s),
               .op = "DEPTHWISE_CONV_2D",
               .operands = {x, f, s.bias ? b : Absent()},
               .attrs = options,
               .results = {F32({s.batch, h.out, w.out, s.out}, y)},
               .atol = 1e-5,
               .rtol = 1e-5});
}

// The transpose of Conv's matrix: the spec's input is the result here.
void Transposed(Cases& c, const Spec& s) {
  const Axis h = Pad(s.height, s.filter_height, s.stride_h, 1, s.padding),
             w = Pad(s.width, s.filter_width, s.stride_w, 1, s.padding);
  const Data x = Random<float>({s.batch, h.out, w.out, s.in}, 1, -1, 1);
  const Data f = Random<float>({s.out, s.filter_height, s.filter_width, s.in}, 2, -1, 1),
             b = Random<float>({s.out}, 3);
  const std::vector<float> vx = As<float>(x), vf = As<float>(f), vb = As<float>(b);
  std::vector<double> y(static_cast<size_t>(s.batch * s.height * s.width * s.out));
  for (size_t i = 0; i < y.size(); ++i) y[i] = s.bias ? vb[i % vb.size()] : 0;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t iy = 0; iy < h.out; ++iy)
      for (int64_t ix = 0; ix < w.out; ++ix)
        for (int64_t ky = 0; ky < s.filter_height; ++ky)
          for (int64_t kx = 0; kx < s.filter_width; ++kx) {
            const int64_t oy = iy * s.stride_h - h.before + ky, ox = ix * s.stride_w - w.before + kx;
            if (oy < 0 || oy >= s.height || ox < 0 || ox >= s.width) continue;
            for (int64_t o = 0; o < s.out; ++o)
              for (int64_t i = 0; i < s.in; ++i)
                y[At(n, s.height, oy, s.width, ox, s.out, o)] +=
                    static_cast<double>(vx[At(n, h.out, iy, w.out, ix, s.in, i)]) *
                    vf[At(o, s.filter_height, ky, s.filter_width, kx, s.in, i)];
          }
  std::vector<Data> operands = {I32({4}, {static_cast<int32_t>(s.batch), static_cast<int32_t>(s.height),
                                          static_cast<int32_t>(s.width), static_cast<int32_t>(s.out)}),
                                f, x};
  if (s.bias) operands.push_back(b);
  c.push_back({.name = Name(s),
               .op = "TRANSPOSE_CONV",
               .operands = operands,
               .attrs = {{"padding", s.padding}, {"stride_h", s.stride_h}, {"stride_w", s.stride_w}},
               .results = {F32({s.batch, s.height, s.width, s.out}, {y.begin(), y.end()})},
               .atol = 1e-5,
               .rtol = 1e-5});
}

const Suite kConv("conv", [](Cases& c) {
  Conv(c, {1, 5, 4, 3, 2, 3, 3});
  Conv(c, {2, 7, 6, 1, 5, 3, 2, 2, 3});
  Conv(c, {1, 8, 9, 4, 3, 3, 3, 1, 1, 2, 3});
  Conv(c, {2, 8, 9, 4, 6, 3, 3, 2, 1, 1, 2, "VALID", 2});
  Conv(c, {1, 6, 6, 6, 6, 3, 3, 1, 1, 1, 1, "SAME", 6, false});
  Conv(c, {3, 5, 5, 9, 7, 1, 1});
  Conv(c, {1, 5, 5, 9, 7, 1, 1, 2, 2, 1, 1, "VALID", 1, false});
  Conv(c, {1, 2, 2, 3, 4, 5, 5});
  Conv(c, {1, 3, 3, 2, 4, 3, 3, 1, 1, 5, 5});
  Conv(c, {0, 5, 4, 3, 2, 3, 3});
  Conv(c, {1, 40, 37, 8, 16, 3, 3});
  Conv(c, {1, 20, 1, 200, 12, 5, 1, 1, 1, 1, 1, "VALID"});
  Conv(c, {1, 2, 5, 1, 1, 3, 3, 1, 1, 1, 1, "VALID"});
  Conv(c, {1, 40, 37, 16, 1, 3, 3});
  Conv(c, {1, 12, 12, 90, 20, 3, 3});
  Conv(c, {1, 1, 300, 20, 9, 1, 3, 1, 1, 1, 16});
  Conv(c, {1, 30, 30, 12, 6, 3, 3, 1, 1, 2, 2, "SAME", 3});
  Conv(c, {1, 3, 4, 2, 20, 2, 2, INT32_MAX, INT32_MAX, 1, 1, "VALID"});
  Conv(c, {1, 3, 4, 2, 20, 2, 3, 1, 1, INT32_MAX, INT32_MAX});

  Depthwise(c, {1, 5, 4, 3, 3, 3, 3});
  Depthwise(c, {2, 7, 6, 2, 6, 3, 2, 2, 3});
  Depthwise(c, {1, 8, 9, 19, 19, 3, 3, 1, 1, 2, 3});
  Depthwise(c, {1, 8, 9, 4, 4, 3, 3, 2, 1, 1, 2, "VALID", 1, false});
  Depthwise(c, {1, 2, 2, 1, 4, 5, 5});
  Depthwise(c, {1, 40, 40, 24, 24, 5, 5, 2, 2});

  Transposed(c, {1, 6, 6, 3, 2, 3, 3, 2, 2});
  Transposed(c, {2, 7, 5, 1, 4, 3, 3, 2, 1, 1, 1, "VALID"});
  Transposed(c, {1, 8, 8, 5, 3, 2, 2, 2, 2, 1, 1, "SAME", 1, false});
  Transposed(c, {1, 9, 4, 2, 2, 4, 3, 3, 2, 1, 1, "VALID", 1, false});
  Transposed(c, {1, 5, 5, 2, 2, 1, 1, 3, 3});
  Transposed(c, {1, 32, 30, 16, 8, 4, 4, 2, 2});
});

const Suite kConvErrors("conv errors", [](Cases& c) {
  const Data x = F32({1, 4, 4, 3}, {1}), f = F32({2, 3, 3, 3}, {1});
  const std::vector<Attr> one = {{"stride_h", 1}, {"stride_w", 1}};
  c.push_back({.name = "no stride", .op = "CONV_2D", .operands = {x, f}, .error = "a stride of 0"});
  c.push_back({.name = "dilation",
               .op = "CONV_2D",
               .operands = {x, f},
               .attrs = {{"stride_h", 1}, {"stride_w", 1}, {"dilation_w_factor", 0}},
               .error = "a dilation of 0"});
  c.push_back({.name = "padding",
               .op = "CONV_2D",
               .operands = {x, f},
               .attrs = {{"stride_h", 1}, {"stride_w", 1}, {"padding", "FULL"}},
               .error = "FULL"});
  c.push_back({.name = "channels",
               .op = "CONV_2D",
               .operands = {x, F32({2, 3, 3, 2}, {1})},
               .attrs = one,
               .error = "3 channels for a filter of 2"});
  c.push_back({.name = "groups",
               .op = "CONV_2D",
               .operands = {x, F32({2, 3, 3, 1}, {1})},
               .attrs = one,
               .error = "do not divide into 3 groups"});
  c.push_back({.name = "bias",
               .op = "CONV_2D",
               .operands = {x, f, F32({3}, {1})},
               .attrs = one,
               .error = "a bias of 3"});
  c.push_back({.name = "rank",
               .op = "CONV_2D",
               .operands = {F32({4, 4, 3}, {1}), f},
               .attrs = one,
               .error = "rank 3, expected 4"});
  c.push_back({.name = "no taps",
               .op = "CONV_2D",
               .operands = {x, F32({2, 0, 3, 3}, {0})},
               .attrs = one,
               .error = "an empty filter"});
  c.push_back({.name = "too large a window",
               .op = "CONV_2D",
               .operands = {F32({1, 1, 4, 3}, {1}), f},
               .attrs = {{"stride_h", 1}, {"stride_w", 1}, {"padding", "VALID"}},
               .error = "does not fit"});
  c.push_back({.name = "fused",
               .op = "CONV_2D",
               .operands = {F32({1, 1, 1, 1}, {-3}), F32({2, 1, 1, 1}, {1, -1})},
               .attrs = {{"stride_h", 1}, {"stride_w", 1}, {"fused_activation_function", "RELU"}},
               .results = {F32({1, 1, 1, 2}, {0, 3})}});
  for (const char* op : {"CONV_2D", "DEPTHWISE_CONV_2D"})
    c.push_back({.name = "fused tanh",
                 .op = op,
                 .operands = {F32({1, 1, 2, 1}, {0.5f, -2}), F32({1, 1, 1, 1}, {1})},
                 .attrs = {{"stride_h", 1}, {"stride_w", 1}, {"fused_activation_function", "TANH"}},
                 .results = {F32({1, 1, 2, 1}, {std::tanh(0.5f), std::tanh(-2.0f)})},
                 .atol = 1e-6});
  c.push_back({.name = "filters",
               .op = "DEPTHWISE_CONV_2D",
               .operands = {x, F32({1, 3, 3, 4}, {1})},
               .attrs = one,
               .error = "4 filters for 3 channels"});
  c.push_back({.name = "leading dim",
               .op = "DEPTHWISE_CONV_2D",
               .operands = {x, F32({2, 3, 3, 3}, {1})},
               .attrs = one,
               .error = "first dim of the filter"});
  const Data shape = I32({4}, {1, 4, 4, 2});
  c.push_back({.name = "output channels",
               .op = "TRANSPOSE_CONV",
               .operands = {I32({4}, {1, 4, 4, 5}), f, x},
               .attrs = one,
               .error = "channels of the output shape"});
  c.push_back({.name = "output shape",
               .op = "TRANSPOSE_CONV",
               .operands = {I32({3}, {1, 4, 4}), f, x},
               .attrs = one,
               .error = "an output shape of [1,4,4]"});
  c.push_back({.name = "negative size",
               .op = "TRANSPOSE_CONV",
               .operands = {I32({4}, {1, -4, 4, 2}), f, x},
               .attrs = one,
               .error = "an output shape"});
  c.push_back({.name = "channels",
               .op = "TRANSPOSE_CONV",
               .operands = {shape, F32({2, 3, 3, 2}, {1}), x},
               .attrs = one,
               .error = "channels of the filter"});
});

}  // namespace
}  // namespace fusebox::conformance
