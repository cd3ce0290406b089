// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>

#include "converter/quantize/quantize.h"

namespace fusebox::converter::quantize {
namespace {

constexpr int kExponentBias = 127;   // of an f32 exponent
constexpr size_t kNotFinite = 0xff;  // exponent of values that are not finite
constexpr int kMantissaBits = 23;

}  // namespace

void Magnitudes::Add(const Tensor& tensor) {
  for (const float value : tensor.data.As<float>())
    ++counts_[(std::bit_cast<uint32_t>(value) >> kMantissaBits) & kNotFinite];
}

double Magnitudes::ShareBelow(double bound) const {
  double below = 0;
  double all = 0;
  for (size_t e = 1; e < kNotFinite; ++e) {
    const auto count = static_cast<double>(counts_[e]);
    all += count;
    if (std::ldexp(1.0, static_cast<int>(e) + 1 - kExponentBias) <= bound) below += count;
  }
  return all > 0 ? below / all : 0;
}

}  // namespace fusebox::converter::quantize
