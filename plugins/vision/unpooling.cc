// SPDX-License-Identifier: Apache-2.0
#include "plugins/vision/unpooling.h"

#include <algorithm>
#include <string>

#include "plugins/common/text.h"
#include "plugins/vision/pool_options.h"

namespace fusebox::vision {
namespace {

int64_t Unpooled(int64_t size, int32_t padding, int32_t stride, int32_t window) {
  if (size <= 0) return size;
  return padding == kSame ? size * stride : (size - 1) * stride + window;
}

// Row and column come from the index, the channel from the value's position. Values at one position are
// added.
template <class T>
void Scatter(const Node& n) {
  const Tensor values = n.in(0);
  const Tensor out = n.out(0);
  std::fill_n(out.data<T>(), out.count(), T(0));
  const int64_t each = values.count() / std::max<int64_t>(values.dim(0), 1);
  const int64_t place = out.count() / std::max<int64_t>(out.dim(0), 1);
  const int64_t channels = std::max<int64_t>(out.dim(3), 1);
  for (int64_t i = 0; i < values.count(); ++i) {
    const int32_t index = n.in(1).data<const int32_t>()[i];
    if (index < 0 || index >= place)
      throw Error{FBX_INVALID,
                  "index " + std::to_string(index) + " is outside of an image of " + std::to_string(place),
                  common::Subject(1)};
    out.data<T>()[i / each * place + index / channels * channels + i % channels] += values.data<const T>()[i];
  }
}

}  // namespace

void MaxUnpooling2D::supports(const Node& n) {
  PoolOptionsOf(n, sizeof(PoolOptions));
  if (n.in_count() != 2) return;
  const fbx_dtype dtype = n.in(0).dtype();
  if (dtype != FBX_F32 && dtype != FBX_F64)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(dtype), common::Subject(0)};
  if (n.in(1).dtype() != FBX_I32)
    throw Reject{"DTYPE", std::string("dtype ") + dtype_name(n.in(1).dtype()) + ", expected i32",
                 common::Subject(1)};
}

void MaxUnpooling2D::infer(const Node& n, Infer& out) {
  if (n.in_count() != 2 || n.out_count() != 1)
    throw Error{FBX_INVALID, std::to_string(n.in_count()) + " operands and " + std::to_string(n.out_count()) +
                                 " results, expected 2 and 1"};
  const Tensor values = n.in(0);
  const Tensor indices = n.in(1);
  for (uint32_t i = 0; i < 2; ++i) {
    if (n.in(i).rank() >= 0 && n.in(i).rank() != 4)
      throw Error{FBX_INVALID, "rank " + std::to_string(n.in(i).rank()) + ", expected 4", common::Subject(i)};
  }
  if (values.rank() < 0) return out.unranked(0, values.dtype());
  if (values.is_static() && indices.is_static() && !std::ranges::equal(values.dims(), indices.dims()))
    throw Error{FBX_INVALID, "has a different shape than the values", common::Subject(1)};
  const PoolOptions options = OrError([&] { return PoolOptionsOf(n, sizeof(PoolOptions)); });
  out.set(
      0, values.dtype(),
      {values.dim(0), Unpooled(values.dim(1), options.padding, options.stride_height, options.window_height),
       Unpooled(values.dim(2), options.padding, options.stride_width, options.window_width), values.dim(3)});
}

void MaxUnpooling2D::invoke(const Node& n) const {
  n.in(0).dtype() == FBX_F64 ? Scatter<double>(n) : Scatter<float>(n);
}

}  // namespace fusebox::vision
