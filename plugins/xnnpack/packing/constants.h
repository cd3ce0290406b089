// SPDX-License-Identifier: Apache-2.0
// Constants in the types that XNNPACK reads, followed by the bytes that its vectors read past the end.
#pragma once

#include <xnnpack.h>

#include <cstdint>
#include <span>
#include <vector>

#include <fusebox/delegate.hpp>

namespace fusebox::xnnpack {

using namespace sdk;

template <class T>
std::vector<uint8_t> BytesOf(const std::vector<T>& values) {
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  std::vector<uint8_t> bytes(data, data + values.size() * sizeof(T));
  bytes.resize(bytes.size() + XNN_EXTRA_BYTES);
  return bytes;
}

// f32 values of a constant that is f32, f16, or quantized integers.
std::vector<uint8_t> ToFloat(Tensor constant);
// The same `times` times.
std::vector<uint8_t> Repeat(Tensor constant, size_t times);
// The filter [n,height,width,channels] of `pixels` adjacent results, as one [pixels*n,height,width + step *
// (pixels - 1),channels]: the part of each result begins `step` columns behind the one before.
std::vector<uint8_t> SpreadFilter(Tensor filter, size_t pixels, size_t step);
// Rounded to nearest, ties to even; f16 is infinite from 65520 on.
std::vector<uint8_t> ToHalf(std::span<const float> values);
std::vector<uint8_t> ToBfloat(std::span<const float> values);
// XNNPACK stores blockwise 4-bit weights with zero point 8, the format with 0.
std::vector<uint8_t> FlipNibbles(Tensor constant);

}  // namespace fusebox::xnnpack
