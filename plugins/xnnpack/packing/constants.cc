// SPDX-License-Identifier: Apache-2.0
#include "plugins/xnnpack/packing/constants.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace fusebox::xnnpack {

namespace {

float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = half >> 10 & 0x1f;
  const uint32_t fraction = half & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);   // NaN
  if (rest >= 0x477ff000) return static_cast<uint16_t>(sign | 0x7c00);  // 65520 and more
  if (rest < 0x38800000)  // denormal: the sum has a unit of 2^-24
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(std::fabs(value) + 0.5f) - 0x3f000000));
  return static_cast<uint16_t>(sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}

uint16_t FloatToBfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
void Dequantize(Tensor t, float* out) {
  const fbx_quant& q = *t.quant();
  size_t inner = 1;
  size_t channels = 1;
  if (q.kind == FBX_QUANT_PER_AXIS) {
    channels = q.count;
    for (int i = q.axis + 1; i < t.rank(); ++i) inner *= static_cast<size_t>(t.dim(i));
  }
  const T* in = t.data<const T>();
  for (size_t i = 0, n = static_cast<size_t>(t.count()); i < n; ++i) {
    const size_t c = i / inner % channels;
    out[i] = q.scales[c] * static_cast<float>(static_cast<int64_t>(in[i]) - q.zero_points[c]);
  }
}

template <class F>
std::vector<uint8_t> Rounded(std::span<const float> values, const F& round) {
  std::vector<uint16_t> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), round);
  return BytesOf(rounded);
}

}  // namespace

std::vector<uint8_t> ToFloat(Tensor constant) {
  std::vector<float> values(static_cast<size_t>(constant.count()));
  if (constant.dtype() == FBX_F16) {
    std::transform(constant.data<const uint16_t>(), constant.data<const uint16_t>() + values.size(),
                   values.begin(), HalfToFloat);
  } else if (constant.dtype() == FBX_I8) {
    Dequantize<int8_t>(constant, values.data());
  } else if (constant.dtype() == FBX_U8) {
    Dequantize<uint8_t>(constant, values.data());
  } else {
    std::memcpy(values.data(), constant.data<const float>(), values.size() * sizeof(float));
  }
  return BytesOf(values);
}

std::vector<uint8_t> Repeat(Tensor constant, size_t times) {
  const std::vector<uint8_t> floats = ToFloat(constant);
  const size_t size = static_cast<size_t>(constant.count()) * sizeof(float);
  std::vector<uint8_t> all(size * times + XNN_EXTRA_BYTES);
  for (size_t i = 0; i < times; ++i) std::memcpy(all.data() + i * size, floats.data(), size);
  return all;
}

std::vector<uint8_t> SpreadFilter(Tensor filter, size_t pixels, size_t step) {
  const std::vector<uint8_t> floats = ToFloat(filter);
  const auto size = [&](int dim) { return static_cast<size_t>(filter.dim(dim)); };
  const size_t lines = size(0) * size(1);
  const size_t pixel = size(3) * sizeof(float);
  const size_t line = size(2) * pixel;
  const size_t wide = line + step * (pixels - 1) * pixel;
  std::vector<uint8_t> all(pixels * lines * wide + XNN_EXTRA_BYTES);
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t i = 0; i < lines; ++i)
      std::memcpy(all.data() + (p * lines + i) * wide + p * step * pixel, floats.data() + i * line, line);
  }
  return all;
}

std::vector<uint8_t> ToHalf(std::span<const float> values) { return Rounded(values, FloatToHalf); }
std::vector<uint8_t> ToBfloat(std::span<const float> values) { return Rounded(values, FloatToBfloat); }

std::vector<uint8_t> FlipNibbles(Tensor t) {
  const uint8_t* in = t.data<const uint8_t>();
  std::vector<uint8_t> out(in, in + t.bytes());
  for (uint8_t& b : out) b ^= 0x88;
  out.resize(out.size() + XNN_EXTRA_BYTES);
  return out;
}

}  // namespace fusebox::xnnpack
