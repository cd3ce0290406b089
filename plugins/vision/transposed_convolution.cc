// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/transposed_convolution.h"

#include <algorithm>
#include <limits>

#include "plugins/math/costs.h"
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

struct Geometry {
  TransposedAxis y;
  TransposedAxis x;
  int64_t channels;  // of the result
};

// Adds the taps of input rows [first, last) to an output row. value(pixel, tap of an output) returns a
// product.
template <class F>
void AddTaps(const Geometry& g, int64_t first, int64_t last, int64_t row, const F& value, float* out) {
  const auto& [y, x, channels] = g;
  for (int64_t ky = (row + y.padding) % y.stride; ky < y.taps; ky += y.stride) {
    const int64_t from_y = (row + y.padding - ky) / y.stride;
    if (row + y.padding < ky || from_y < first || from_y >= last) continue;
    for (int64_t column = 0; column < x.out; ++column) {
      for (int64_t kx = (column + x.padding) % x.stride; kx < x.taps; kx += x.stride) {
        const int64_t from_x = (column + x.padding - kx) / x.stride;
        if (column + x.padding < kx || from_x >= x.in) continue;
        const int64_t pixel = from_y * x.in + from_x;
        for (int64_t o = 0; o < channels; ++o)
          out[column * channels + o] += value(pixel, (o * y.taps + ky) * x.taps + kx);
      }
    }
  }
}

// Adds the taps of input rows [first, last) to an image.
template <class F>
void AddBand(const fbx_host* host, const Geometry& g, int64_t first, int64_t last, const F& value,
             float* out) {
  const int64_t from = std::clamp<int64_t>(first * g.y.stride - g.y.padding, 0, g.y.out);
  const int64_t until = std::clamp<int64_t>((last - 1) * g.y.stride + g.y.taps - g.y.padding, from, g.y.out);
  parallel_for(host, static_cast<size_t>(until - from), 1, [&](size_t begin, size_t end, uint32_t) {
    for (int64_t row = from + static_cast<int64_t>(begin); row < from + static_cast<int64_t>(end); ++row)
      AddTaps(g, first, last, row, value, out + row * g.x.out * g.channels);
  });
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

TransposedConvolution::TransposedConvolution(const Node& n) {
  if (n.in(1).is_const()) products_ = Gemm(n, {.weights = n.in(1)});
}

TransposedConvolution::State TransposedConvolution::prepare(const Node& n, Plan& plan) const {
  if (!n.in(1).is_const()) return {};
  constexpr int64_t kCacheFloats = math::kSumsBytes / sizeof(float);
  const int64_t width = n.in(0).dim(2);
  const int64_t each = width * (n.in(1).count() / std::max<int64_t>(1, n.in(1).dim(3)));
  const int64_t band = std::max<int64_t>(1, kCacheFloats / std::max<int64_t>(1, each));
  return {band, products_.prepare(plan, band * width),
          plan.scratch(static_cast<size_t>(band * each) * sizeof(float))};
}

void TransposedConvolution::invoke(const Node& n, const State& state) const {
  const Tensor in = n.in(0);
  const Tensor out = n.out(0);
  if (out.count() == 0) return;
  const Options options = OptionsOf(n);
  const Geometry g{TransposedAxisOf(n, options, 1), TransposedAxisOf(n, options, 2), out.dim(3)};
  const int64_t height = g.y.in;
  const int64_t width = g.x.in;
  const int64_t depth = in.dim(3);
  const auto* image = in.data<const float>();
  auto* to = out.data<float>();
  const auto* const filter = n.in(1).data<const float>();
  const auto dot = [&](int64_t pixel, int64_t tap) {
    return Dot(image + pixel * depth, filter + tap * depth, depth);
  };
  for (int64_t item = 0; item < out.dim(0); ++item) {
    for (int64_t i = 0; i < g.y.out * g.x.out; ++i)
      std::copy_n(n.in(2).data<const float>(), g.channels, to + i * g.channels);
    if (state.band == 0) AddBand(n.host(), g, 0, height, dot, to);
    for (int64_t first = 0; state.band > 0 && first < height; first += state.band) {
      const int64_t last = std::min(height, first + state.band);
      const int64_t begin = first * width;
      const int64_t taps = g.channels * g.y.taps * g.x.taps;
      auto* const products = n.scratch<float>(state.products);
      products_.run(n, state.gemm, image + begin * depth, (last - first) * width, products);
      const auto product = [=](int64_t pixel, int64_t tap) { return products[(pixel - begin) * taps + tap]; };
      AddBand(n.host(), g, first, last, product, to);
    }
    image += height * width * depth;
    to += g.y.out * g.x.out * g.channels;
  }
}

}  // namespace fusebox::vision
