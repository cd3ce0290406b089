// SPDX-License-Identifier: Apache-2.0
// Moving elements without reading them, for all kernels that only rearrange data.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/base/dispatch.h"
#include "plugins/cpu/base/shape.h"

namespace fusebox::cpu {

using namespace sdk;

// Copies the elements of an index space `dims` from src + i . src_strides to dst + i . dst_strides. Both
// pointers refer to index 0. Strides are in elements of `width` bytes; they may be 0 (src only) or negative.
// Destinations must be distinct and the memory must not overlap.
void CopyBox(const fbx_host* host, size_t width, const Shape& dims, const void* src, const Shape& src_strides,
             void* dst, const Shape& dst_strides);

// Copies from kBytes to 2 * kBytes bytes by two moves, which overlap.
template <size_t kBytes>
[[gnu::always_inline]] inline void CopyEnds(std::byte* to, const std::byte* from, size_t bytes) {
  std::array<std::byte, kBytes> first;
  std::array<std::byte, kBytes> last;
  std::memcpy(&first, from, kBytes);
  std::memcpy(&last, from + bytes - kBytes, kBytes);
  std::memcpy(to, &first, kBytes);
  std::memcpy(to + bytes - kBytes, &last, kBytes);
}

// memcpy, faster for few bytes.
[[gnu::always_inline]] inline void CopyBytes(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes > 32) std::memcpy(to, from, bytes);
  else if (bytes >= 16) CopyEnds<16>(to, from, bytes);
  else if (bytes >= 8) CopyEnds<8>(to, from, bytes);
  else if (bytes >= 4) CopyEnds<4>(to, from, bytes);
  else
    for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

// CopyBytes `count` times, from and to places that are equally far apart, in bytes.
void CopyEach(const std::byte* from, int64_t from_step, std::byte* to, int64_t to_step, int64_t count,
              size_t bytes);

// Sets `count` elements to the one at `value`.
void FillElements(size_t width, const void* value, void* dst, int64_t count);

inline const std::byte* Elements(Tensor t, int64_t offset = 0) {
  return t.data<const std::byte>() + offset * static_cast<int64_t>(ElementSize(t.dtype()));
}
inline std::byte* MutableElements(Tensor t, int64_t offset = 0) {
  return t.data<std::byte>() + offset * static_cast<int64_t>(ElementSize(t.dtype()));
}

// Zero as an element: zero bits, or the zero point of a quantized result. Stored in `storage`.
const void* ZeroOf(Tensor t, Bits128& storage);

// For invoke: throws if the operands' values yield another shape than planned.
inline void CheckPlanned(const Shape& now, Tensor planned) {
  if (now != Shape(planned))
    Fail("the operands' values yield a result of shape " + Text(now) + ", planned was " +
         Text(planned.dims()));
}

}  // namespace fusebox::cpu
