// SPDX-License-Identifier: Apache-2.0
// Moving elements without looking at them: what all kernels that only rearrange data are made of.
#pragma once

#include <cstddef>

#include <fusebox/kernel.hpp>

#include "plugins/cpu/dispatch.h"
#include "plugins/cpu/shape.h"

namespace fusebox::cpu {

// Copies the elements of an index space `dims`; element i stands at src + i . src_strides and goes to dst + i
// . dst_strides. Both pointers are those of index 0, strides count elements of `width` bytes and may be 0
// (src only) or negative. No two indices may have one destination, and the memory must not overlap.
void CopyBox(const fbx_host* host, size_t width, const Shape& dims, const void* src, const Shape& src_strides,
             void* dst, const Shape& dst_strides);

// Sets `count` elements to the one at `value`.
void FillElements(size_t width, const void* value, void* dst, int64_t count);

inline const std::byte* Elements(Tensor t, int64_t offset = 0) {
  return t.data<const std::byte>() + offset * static_cast<int64_t>(ElementSize(t.dtype()));
}
inline std::byte* MutableElements(Tensor t, int64_t offset = 0) {
  return t.data<std::byte>() + offset * static_cast<int64_t>(ElementSize(t.dtype()));
}

// The value that stands for zero: zero bits, or the zero point of a quantized result. Lives in `storage`.
const void* ZeroOf(Tensor t, Bits128& storage);

// For invoke: what the operands' values say now must be what the result was planned for.
inline void CheckPlanned(const Shape& now, Tensor planned) {
  if (now != Shape(planned))
    Fail("the operands' values make a result of shape " + Text(now) + ", planned was " +
         Text(planned.dims()));
}

}  // namespace fusebox::cpu
