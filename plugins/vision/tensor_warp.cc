// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/tensor_warp.h"

#include <algorithm>
#include <cmath>

#include "plugins/vision/operands.h"
#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

struct Size {
  int64_t height, width;
};

Size SizeOf(const Node& n) {
  Size size{0, 0};
  if (n.version() >= 2) {
    size = {n.attrs().i64("output_height", 0), n.attrs().i64("output_width", 0)};
  } else if (const auto sizes = n.attrs().i64s("output_size"); sizes.size() == 2) {
    size = {sizes[0], sizes[1]};
  }
  for (const int64_t s : {size.height, size.width})
    if (s < 1 || s > 65536) throw Reject{"OPTIONS", "an output size is " + std::to_string(s)};
  if (n.attrs().s("mode", "bilinear") != "bilinear")
    throw Reject{"OPTIONS", "mode is " + std::string(n.attrs().s("mode"))};
  return size;
}

// A row of the matrix: where a coordinate of the image comes from.
struct Row {
  float x, y, one;

  Row(const float* row, bool centers) : x(row[0]), y(row[1]), one(row[3]) {
    if (centers) one = static_cast<float>(one + (x * 0.5 + y * 0.5 - 0.5));
  }
  float At(int64_t column, int64_t row) const {
    return x * static_cast<float>(column) + y * static_cast<float>(row) + one;
  }
};

float Between(float a, float b, float share) {
  return static_cast<float>((1.0 - share) * a + static_cast<double>(share * b));
}

}  // namespace

void TensorWarp::supports(const Node& n) {
  SizeOf(n);
  RejectUnlessF32(n, 2);
}

void TensorWarp::infer(const Node& n, Infer& out) {
  RequireArity(n, 2, 1);
  RequireRank(n, 0, 4);
  if (DimOf(n.in(0), 0) > 1) throw Error{FBX_INVALID, "several images, expected one", common::Subject(0)};
  if (n.in(1).is_static() && n.in(1).count() != 16)
    throw Error{FBX_INVALID, common::ShapeText(n.in(1)) + " is not a 4 x 4 matrix", common::Subject(1)};
  const Size size = OrError([&] { return SizeOf(n); });
  out.set(0, FBX_F32, {DimOf(n.in(0), 0), size.height, size.width, DimOf(n.in(0), 3)});
}

void TensorWarp::invoke(const Node& n) const {
  const Tensor in = n.in(0);
  const Tensor out = n.out(0);
  if (out.count() == 0) return;
  const int64_t height = in.dim(1);
  const int64_t width = in.dim(2);
  const int64_t channels = in.dim(3);
  const float* const matrix = n.in(1).data<const float>();
  const Row to_x(matrix, n.version() >= 2);
  const Row to_y(matrix + 4, n.version() >= 2);
  parallel_for(n.host(), static_cast<size_t>(out.dim(1)), 16, [&](size_t begin, size_t end, uint32_t) {
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      float* pixel = out.data<float>() + row * out.dim(2) * channels;
      for (int64_t column = 0; column < out.dim(2); ++column, pixel += channels) {
        const float x = to_x.At(column, row);
        const float y = to_y.At(column, row);
        // False for NaN too.
        const bool inside =
            x >= 0 && x <= static_cast<float>(width - 1) && y >= 0 && y <= static_cast<float>(height - 1);
        if (!inside) {
          std::fill_n(pixel, channels, 0.0F);
          continue;
        }
        const auto left = static_cast<int64_t>(x);
        const auto top = static_cast<int64_t>(y);
        const float right = x - static_cast<float>(left);
        const float down = y - static_cast<float>(top);
        const float* const corner = in.data<const float>() + (top * width + left) * channels;
        for (int64_t c = 0; c < channels; ++c) {
          const auto value = [&](int64_t dy, int64_t dx) {
            return top + dy < height && left + dx < width ? corner[(dy * width + dx) * channels + c] : 0.0F;
          };
          pixel[c] = Between(Between(value(0, 0), value(0, 1), right),
                             Between(value(1, 0), value(1, 1), right), down);
        }
      }
    }
  });
}

}  // namespace fusebox::vision
