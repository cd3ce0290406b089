// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/image_warp.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "plugins/common/text.h"
#include "plugins/math/costs.h"

namespace fusebox::vision {
namespace {

void RequireFloat(const Node& n, uint32_t i) {
  const fbx_dtype dtype = n.in(i).dtype();
  if (dtype != n.in(0).dtype() || (dtype != FBX_F32 && dtype != FBX_F64))
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(dtype), common::Subject(i)};
}

// A position between pixel `at` and the next; `share` is the fraction.
template <class T>
struct Place {
  int64_t at;
  T share;
  Place(T where, int64_t size) {
    // NaN selects the first pixel.
    const T inside = where > 0 ? std::min(where, static_cast<T>(size - 1)) : T(0);
    at = std::min(static_cast<int64_t>(inside), size - 2);
    share = inside - static_cast<T>(at);
  }
};

template <class T>
void Warp(const Node& n, size_t begin, size_t end) {
  const Tensor images = n.in(0);
  const int64_t height = images.dim(1);
  const int64_t width = images.dim(2);
  const int64_t channels = images.dim(3);
  const T* const flow = n.in(1).data<const T>();
  for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
    const T* const image = images.data<const T>() + row / height * height * width * channels;
    T* out = n.out(0).data<T>() + row * width * channels;
    for (int64_t x = 0; x < width; ++x, out += channels) {
      const T* const by = flow + 2 * (row * width + x);
      const Place<T> down(static_cast<T>(row % height) - by[0], height);
      const Place<T> right(static_cast<T>(x) - by[1], width);
      const T* const corner = image + (down.at * width + right.at) * channels;
      const T* const below = corner + width * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const T top = corner[c] + right.share * (corner[channels + c] - corner[c]);
        const T bottom = below[c] + right.share * (below[channels + c] - below[c]);
        out[c] = top + down.share * (bottom - top);
      }
    }
  }
}

}  // namespace

void DenseImageWarp::supports(const Node& n) {
  for (uint32_t i = 0; i < 2 && i < n.in_count(); ++i) RequireFloat(n, i);
}

void DenseImageWarp::infer(const Node& n, Infer& out) {
  if (n.in_count() != 2 || n.out_count() != 1)
    throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
                                 " results, expected 2 and 1"};
  for (uint32_t i = 0; i < 2; ++i) {
    if (n.in(i).rank() >= 0 && n.in(i).rank() != 4)
      throw Error{FBX_INVALID, "rank " + std::to_string(n.in(i).rank()) + ", expected 4", common::Subject(i)};
  }
  const Tensor images = n.in(0);
  const Tensor flow = n.in(1);
  out.like(0, images);
  if (!images.is_static() || !flow.is_static()) return;
  for (int i = 0; i < 3; ++i) {
    if (images.dim(i) != flow.dim(i))
      throw Error{FBX_INVALID, "dimension " + std::to_string(i) + " is not that of the images",
                  common::Subject(1)};
  }
  if (flow.dim(3) != 2) throw Error{FBX_INVALID, "not two numbers per pixel", common::Subject(1)};
  if (images.count() > 0 && (images.dim(1) < 2 || images.dim(2) < 2))
    throw Error{FBX_INVALID, "less than two pixels high or wide", common::Subject(0)};
}

void DenseImageWarp::invoke(const Node& n) const {
  const Tensor images = n.in(0);
  if (images.count() == 0) return;
  const auto rows = static_cast<size_t>(images.dim(0) * images.dim(1));
  const auto grain = math::Grain(images.dim(2) * images.dim(3));
  parallel_for(n.host(), rows, grain, [&](size_t begin, size_t end, uint32_t) {
    images.dtype() == FBX_F64 ? Warp<double>(n, begin, end) : Warp<float>(n, begin, end);
  });
}

}  // namespace fusebox::vision
