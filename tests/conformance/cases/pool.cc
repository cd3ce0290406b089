// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

// Windows of `size` x `size` over an image, all of them inside.
template <class T>
void Pools(Cases& c, const std::string& name, int64_t side, int64_t channels, int64_t size) {
  const Data x = Random<T>({1, side, side, channels}, 4, std::is_signed_v<T> ? -100 : 0, 100);
  const std::vector<T> in = As<T>(x);
  std::vector<T> most, mean;
  const int64_t out = side - size + 1;
  for (int64_t y = 0; y < out; ++y)
    for (int64_t z = 0; z < out; ++z)
      for (int64_t k = 0; k < channels; ++k) {
        double sum = 0;
        T largest = std::numeric_limits<T>::lowest();
        for (int64_t i = y; i < y + size; ++i)
          for (int64_t j = z; j < z + size; ++j) {
            const T v = in[static_cast<size_t>((i * side + j) * channels + k)];
            sum += v;
            largest = std::max(largest, v);
          }
        most.push_back(largest);
        const double quotient = sum / static_cast<double>(size * size);
        mean.push_back(static_cast<T>(std::is_integral_v<T> ? std::round(quotient) : quotient));
      }
  const std::vector<Attr> attrs = {{"padding", "VALID"},
                                   {"stride_h", 1},
                                   {"stride_w", 1},
                                   {"filter_height", size},
                                   {"filter_width", size}};
  const bool stored = std::is_integral_v<T>;
  const auto put = [&](const char* op, const std::vector<T>& values, double rtol) {
    const Data y = Values<T>({1, out, out, channels}, values);
    c.push_back({.name = name,
                 .op = op,
                 .operands = {stored ? x.Quantized(0.5f, 3) : x},
                 .attrs = attrs,
                 .results = {stored ? y.Quantized(0.5f, 3) : y},
                 .rtol = rtol,
                 .also_f64 = false});
  };
  put("MAX_POOL_2D", most, 0);
  put("AVERAGE_POOL_2D", mean, stored ? 0 : 1e-5);
}

const Suite kPool("pool", [](Cases& c) {
  for (const int64_t channels : {1, 9, 70, 150}) {
    const std::string name = std::to_string(channels) + " channels";
    Pools<float>(c, name, 5, channels, 3);
    Pools<int8_t>(c, name + ", i8", 5, channels, 3);
    Pools<uint8_t>(c, name + ", u8", 5, channels, 4);
    Pools<int16_t>(c, name + ", i16", 5, channels, 3);
  }
  Pools<int8_t>(c, "more taps than short sums have, i8", 66, 3, 65);
  const Data x = F32({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, -9});
  const auto options = [](const char* padding, int stride, int height, int width) {
    return std::vector<Attr>{{"padding", padding},
                             {"stride_h", stride},
                             {"stride_w", stride},
                             {"filter_height", height},
                             {"filter_width", width}};
  };
  c.push_back({.name = "VALID",
               .op = "AVERAGE_POOL_2D",
               .operands = {x},
               .attrs = options("VALID", 1, 2, 2),
               .results = {F32({1, 2, 2, 1}, {3, 4, 6, 2.5f})}});
  c.push_back({.name = "SAME counts what is inside",
               .op = "AVERAGE_POOL_2D",
               .operands = {x},
               .attrs = options("SAME", 2, 2, 2),
               .results = {F32({1, 2, 2, 1}, {3, 4.5f, 7.5f, -9})}});
  c.push_back({.name = "root of the mean of squares of what is inside",
               .op = "L2_POOL_2D",
               .operands = {F32({1, 2, 2, 1}, {1, -7, 5, 5})},
               .attrs = options("SAME", 1, 2, 2),
               .results = {F32({1, 2, 2, 1}, {5, 6.0827625f, 5, 5})},
               .rtol = 1e-6,
               .also_f64 = false});
  c.push_back({.name = "VALID",
               .op = "MAX_POOL_2D",
               .operands = {x},
               .attrs = options("VALID", 1, 2, 2),
               .results = {F32({1, 2, 2, 1}, {5, 6, 8, 8})}});
  c.push_back({.name = "SAME",
               .op = "MAX_POOL_2D",
               .operands = {x},
               .attrs = options("SAME", 2, 3, 3),
               .results = {F32({1, 2, 2, 1}, {5, 6, 8, 8})}});
  c.push_back({.name = "padding is not zero",
               .op = "MAX_POOL_2D",
               .operands = {F32({1, 1, 2, 2}, {-1, -2, -3, -4})},
               .attrs = options("SAME", 1, 3, 3),
               .results = {F32({1, 1, 2, 2}, {-1, -2, -1, -2})}});
  std::vector<Attr> clipped = options("VALID", 1, 1, 1);
  clipped.emplace_back("fused_activation_function", "RELU6");
  for (const char* op : {"AVERAGE_POOL_2D", "MAX_POOL_2D"}) {
    c.push_back({.name = "fused",
                 .op = op,
                 .operands = {F32({1, 1, 3, 1}, {-1, 2, 8})},
                 .attrs = clipped,
                 .results = {F32({1, 1, 3, 1}, {0, 2, 6})}});
    c.push_back({.name = "two images",
                 .op = op,
                 .operands = {F32({2, 1, 2, 2}, {1, 2, 1, 2, 5, 6, 5, 6})},
                 .attrs = options("VALID", 1, 1, 2),
                 .results = {F32({2, 1, 1, 2}, {1, 2, 5, 6})}});
    c.push_back({.name = "no images",
                 .op = op,
                 .operands = {F32({0, 2, 2, 1}, {0})},
                 .attrs = options("SAME", 1, 2, 2),
                 .results = {F32({0, 2, 2, 1}, {0})}});
    c.push_back({.name = "a large image",
                 .op = op,
                 .operands = {F32({1, 64, 64, 16}, {2.5f})},
                 .attrs = options("SAME", 2, 3, 3),
                 .results = {F32({1, 32, 32, 16}, {2.5f})}});
    c.push_back({.name = "no filter",
                 .op = op,
                 .operands = {x},
                 .attrs = options("SAME", 1, 0, 1),
                 .error = "a filter of 0"});
    c.push_back({.name = "rank",
                 .op = op,
                 .operands = {F32({3, 3}, {1})},
                 .attrs = options("SAME", 1, 1, 1),
                 .error = "rank 2, expected 4"});
    c.push_back({.name = "too large a window",
                 .op = op,
                 .operands = {x},
                 .attrs = options("VALID", 1, 5, 1),
                 .error = "does not fit"});
    c.push_back({.name = "quantized",
                 .op = op,
                 .operands = {I8({1, 1, 1, 1}, {1}).Quantized(1, 0)},
                 .attrs = options("SAME", 1, 1, 1),
                 .refused = "i8"});
  }
});

}  // namespace
}  // namespace fusebox::conformance
