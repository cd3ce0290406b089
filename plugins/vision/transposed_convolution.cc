// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/transposed_convolution.h"

#include <algorithm>
#include <limits>

#include "plugins/vision/operands.h"
#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

struct Options {
  int32_t padding, stride_width, stride_height;
};

Options OptionsOf(const Node& n) {
  const auto options = RawOptions<Options>(n, sizeof(Options));
  RequirePadding(options.padding);
  RequireSizes({options.stride_width, options.stride_height});
  return options;
}

// One spatial dimension.
struct TransposedAxis {
  int64_t in, taps, out, stride, padding;
};

TransposedAxis TransposedAxisOf(const Node& n, const Options& options, int dim) {
  const int64_t in = DimOf(n.in(0), dim);
  const int64_t taps = DimOf(n.in(1), dim);
  const int64_t stride = dim == 1 ? options.stride_height : options.stride_width;
  if (in < 0 || taps < 0) return {.in = in, .taps = taps, .out = -1, .stride = stride, .padding = 0};
  if (in == 0) return {.in = in, .taps = taps, .out = 0, .stride = stride, .padding = 0};
  if (taps == 0) throw Error{FBX_INVALID, "an empty filter", common::Subject(1)};
  const int64_t most = std::numeric_limits<int32_t>::max();
  if (in > most || taps > most) throw Error{FBX_INVALID, "sizes above 2^31"};
  const int64_t cut = options.padding == kSame ? std::max<int64_t>(0, taps - (in - 1) % stride - 1) : 0;
  return {
      .in = in, .taps = taps, .out = stride * (in - 1) + taps - cut, .stride = stride, .padding = cut / 2};
}

void RequireEqual(int64_t a, int64_t b, const char* what, uint32_t operand) {
  if (a >= 0 && b >= 0 && a != b)
    throw Error{FBX_INVALID,
                std::string(what) + " differ: " + std::to_string(a) + " and " + std::to_string(b),
                common::Subject(operand)};
}

// With several sums, which are vectorized.
float Dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  for (int64_t k = 1; k < kLanes; ++k) sums[0] += sums[k];
  return sums[0];
}

// Adds all taps that reach the output pixel at (row, column).
void AddTaps(const Node& n, const TransposedAxis& y, const TransposedAxis& x, int64_t row, int64_t column,
             const float* image, float* out) {
  const Tensor filter = n.in(1);
  const int64_t depth = filter.dim(3);
  const int64_t each = y.taps * x.taps * depth;
  for (int64_t ky = (row + y.padding) % y.stride; ky < y.taps; ky += y.stride) {
    const int64_t from_y = (row + y.padding - ky) / y.stride;
    if (row + y.padding < ky || from_y >= y.in) continue;
    for (int64_t kx = (column + x.padding) % x.stride; kx < x.taps; kx += x.stride) {
      const int64_t from_x = (column + x.padding - kx) / x.stride;
      if (column + x.padding < kx || from_x >= x.in) continue;
      const float* const pixel = image + (from_y * x.in + from_x) * depth;
      const float* weights = filter.data<const float>() + (ky * x.taps + kx) * depth;
      for (int64_t o = 0; o < filter.dim(0); ++o, weights += each) out[o] += Dot(pixel, weights, depth);
    }
  }
}

}  // namespace

void TransposedConvolution::supports(const Node& n) {
  OptionsOf(n);
  RejectUnlessF32(n, 3);
}

void TransposedConvolution::infer(const Node& n, Infer& out) {
  RequireArity(n, 3, 1);
  RequireRank(n, 0, 4);
  RequireRank(n, 1, 4);
  RequireRank(n, 2, 1);
  const Options options = OrError([&] { return OptionsOf(n); });
  RequireEqual(DimOf(n.in(0), 3), DimOf(n.in(1), 3), "channels of the images and of the filter", 1);
  RequireEqual(DimOf(n.in(1), 0), DimOf(n.in(2), 0), "the filters and the bias", 2);
  out.set(0, FBX_F32,
          {DimOf(n.in(0), 0), TransposedAxisOf(n, options, 1).out, TransposedAxisOf(n, options, 2).out,
           DimOf(n.in(1), 0)});
}

void TransposedConvolution::invoke(const Node& n) const {
  const Tensor in = n.in(0);
  const Tensor out = n.out(0);
  if (out.count() == 0) return;
  const Options options = OptionsOf(n);
  const TransposedAxis y = TransposedAxisOf(n, options, 1);
  const TransposedAxis x = TransposedAxisOf(n, options, 2);
  const int64_t channels = out.dim(3);
  parallel_for(n.host(), static_cast<size_t>(out.dim(0) * y.out), 1, [&](size_t begin, size_t end, uint32_t) {
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      const float* const image = in.data<const float>() + row / y.out * y.in * x.in * in.dim(3);
      float* pixel = out.data<float>() + row * x.out * channels;
      for (int64_t column = 0; column < x.out; ++column, pixel += channels) {
        std::copy_n(n.in(2).data<const float>(), channels, pixel);
        AddTaps(n, y, x, row % y.out, column, image, pixel);
      }
    }
  });
}

}  // namespace fusebox::vision
