// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/argmax.h"

#include <algorithm>
#include <limits>

#include "plugins/math/costs.h"
#include "plugins/vision/operands.h"
#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

// One spatial dimension of the large image and of the small one.
struct Axis {
  int64_t large, small, stride, window, padding;

  // The first element of the window at `at`.
  int64_t Origin(int64_t at) const { return at * stride - padding; }
};

int64_t Positions(int64_t size, int32_t padding, int32_t stride, int32_t window) {
  if (size < 0) return -1;
  if (padding == kSame) return (size + stride - 1) / stride;
  return size < window ? 0 : (size - window) / stride + 1;
}

Axis AxisOf(const PoolOptions& options, int dim, int64_t large, int64_t small) {
  const int64_t stride = dim == 1 ? options.stride_height : options.stride_width;
  const int64_t window = dim == 1 ? options.window_height : options.window_width;
  return {.large = large,
          .small = small,
          .stride = stride,
          .window = window,
          .padding = std::max<int64_t>(0, (small - 1) * stride + window - large) / 2};
}

struct Maximum {
  float value = std::numeric_limits<float>::lowest();
  int64_t at = 0;
};

Maximum MaximumOf(const float* image, const Axis& y, const Axis& x, int64_t row, int64_t column,
                  int64_t channels) {
  Maximum found;
  const int64_t top = y.Origin(row);
  const int64_t left = x.Origin(column);
  for (int64_t ky = std::max<int64_t>(0, -top); ky < std::min(y.window, y.large - top); ++ky) {
    for (int64_t kx = std::max<int64_t>(0, -left); kx < std::min(x.window, x.large - left); ++kx) {
      const float value = image[((top + ky) * x.large + left + kx) * channels];
      if (value > found.value) found = {value, ky * x.window + kx};
    }
  }
  return found;
}

// Dims of the large image of an unpooling.
int64_t Grown(int64_t size, int64_t window) {
  if (size > std::numeric_limits<int32_t>::max())
    throw Error{FBX_INVALID, "a size of " + std::to_string(size)};
  return size < 0 ? -1 : size * window;
}

}  // namespace

void ArgmaxPooling::supports(const Node& n) {
  PoolOptionsOf(n);
  RejectUnlessF32(n, 1);
}

void ArgmaxPooling::infer(const Node& n, Infer& out) {
  RequireArity(n, 1, 2);
  RequireRank(n, 0, 4);
  const PoolOptions o = OrError([&] { return PoolOptionsOf(n); });
  const Tensor in = n.in(0);
  for (uint32_t i = 0; i < 2; ++i)
    out.set(i, FBX_F32,
            {DimOf(in, 0), Positions(DimOf(in, 1), o.padding, o.stride_height, o.window_height),
             Positions(DimOf(in, 2), o.padding, o.stride_width, o.window_width), DimOf(in, 3)});
}

void ArgmaxPooling::invoke(const Node& n) const {
  const Tensor in = n.in(0);
  const Tensor out = n.out(0);
  if (out.count() == 0) return;
  const PoolOptions options = PoolOptionsOf(n);
  const Axis y = AxisOf(options, 1, in.dim(1), out.dim(1));
  const Axis x = AxisOf(options, 2, in.dim(2), out.dim(2));
  const int64_t channels = in.dim(3);
  const auto rows = static_cast<size_t>(out.dim(0) * y.small);
  const auto grain = math::Grain(x.small * channels);
  parallel_for(n.host(), rows, grain, [&](size_t begin, size_t end, uint32_t) {
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      const float* const image = in.data<const float>() + row / y.small * y.large * x.large * channels;
      for (int64_t i = 0; i < x.small * channels; ++i) {
        const Maximum found = MaximumOf(image + i % channels, y, x, row % y.small, i / channels, channels);
        const int64_t at = row * x.small * channels + i;
        out.data<float>()[at] = found.value;
        n.out(1).data<float>()[at] = static_cast<float>(found.at) + 0.1F;
      }
    }
  });
}

void ArgmaxUnpooling::supports(const Node& n) {
  PoolOptionsOf(n);
  RejectUnlessF32(n, 2);
}

void ArgmaxUnpooling::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  for (uint32_t i = 0; i < 2; ++i) RequireRank(n, i, 4);
  const Tensor values = n.in(0);
  const Tensor indices = n.in(1);
  if (values.is_static() && indices.is_static() && !std::ranges::equal(values.dims(), indices.dims()))
    throw Error{FBX_INVALID, "has a different shape than the values", common::Subject(1)};
  const PoolOptions o = OrError([&] { return PoolOptionsOf(n); });
  out.set(0, FBX_F32,
          {DimOf(values, 0), Grown(DimOf(values, 1), o.window_height),
           Grown(DimOf(values, 2), o.window_width), DimOf(values, 3)});
}

void ArgmaxUnpooling::invoke(const Node& n) const {
  const Tensor in = n.in(0);
  const Tensor out = n.out(0);
  std::fill_n(out.data<float>(), out.count(), 0.0F);
  if (in.count() == 0) return;
  const PoolOptions options = PoolOptionsOf(n);
  const Axis y = AxisOf(options, 1, out.dim(1), in.dim(1));
  const Axis x = AxisOf(options, 2, out.dim(2), in.dim(2));
  const int64_t channels = in.dim(3);
  for (int64_t i = 0; i < in.count(); ++i) {
    const float index = n.in(1).data<const float>()[i];
    if (!(index > -1.0F && index < static_cast<float>(y.window * x.window))) continue;
    const auto at = static_cast<int64_t>(index);
    const int64_t pixel = i / channels;
    const int64_t row = pixel / x.small;
    const int64_t to_y = y.Origin(row % y.small) + at / x.window;
    const int64_t to_x = x.Origin(pixel % x.small) + at % x.window;
    if (to_y < 0 || to_y >= y.large || to_x < 0 || to_x >= x.large) continue;
    out.data<float>()[((row / y.small * y.large + to_y) * x.large + to_x) * channels + i % channels] =
        in.data<const float>()[i];
  }
}

}  // namespace fusebox::vision
