// SPDX-License-Identifier: Apache-2.0
// Convolutions over volumes, held against their definition: a sum over taps.
#include <algorithm>
#include <array>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

struct Spec {
  std::array<int64_t, 3> size, filter;
  int64_t batch = 1, in = 2, out = 3;
  std::array<int, 3> stride = {1, 1, 1}, dilation = {1, 1, 1};
  const char* padding = "SAME";
  bool bias = true;
  const char* activation = "NONE";
};

std::array<int64_t, 3> Small(const Spec& s) {
  std::array<int64_t, 3> out{};
  for (size_t i = 0; i < 3; ++i) {
    const int64_t extent = (s.filter[i] - 1) * s.dilation[i] + 1;
    out[i] = std::string(s.padding) == "SAME" ? (s.size[i] + s.stride[i] - 1) / s.stride[i]
                                              : (s.size[i] - extent) / s.stride[i] + 1;
  }
  return out;
}

// f(large, small, tap) of every pair of voxels that the filter joins; numbers are row-major within a volume.
template <class F>
void ForEachPair(const Spec& s, const F& f) {
  const auto small = Small(s);
  std::array<std::vector<std::array<int64_t, 3>>, 3> axes;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t reach = (small[i] - 1) * s.stride[i] + (s.filter[i] - 1) * s.dilation[i] + 1;
    const int64_t before = std::string(s.padding) == "SAME" ? std::max<int64_t>(0, reach - s.size[i]) / 2 : 0;
    for (int64_t o = 0; o < small[i]; ++o) {
      for (int64_t k = 0; k < s.filter[i]; ++k) {
        const int64_t at = o * s.stride[i] - before + k * s.dilation[i];
        if (at >= 0 && at < s.size[i]) axes[i].push_back({at, o, k});
      }
    }
  }
  for (const auto& d : axes[0])
    for (const auto& h : axes[1])
      for (const auto& w : axes[2])
        f((d[0] * s.size[1] + h[0]) * s.size[2] + w[0], (d[1] * small[1] + h[1]) * small[2] + w[1],
          (d[2] * s.filter[1] + h[2]) * s.filter[2] + w[2]);
}

std::vector<Attr> Options(const Spec& s) {
  return {{"padding", s.padding},
          {"stride_d", s.stride[0]},
          {"stride_h", s.stride[1]},
          {"stride_w", s.stride[2]},
          {"dilation_d_factor", s.dilation[0]},
          {"dilation_h_factor", s.dilation[1]},
          {"dilation_w_factor", s.dilation[2]},
          {"fused_activation_function", s.activation}};
}

float Activated(const Spec& s, double v) {
  return static_cast<float>(std::string(s.activation) == "RELU" ? std::max(v, 0.0) : v);
}

int64_t Voxels(const std::array<int64_t, 3>& size) { return size[0] * size[1] * size[2]; }

void Add(Cases& c, const std::string& name, const Spec& s, bool transposed) {
  const auto small = Small(s);
  const auto& from = transposed ? small : s.size;
  const auto& to = transposed ? s.size : small;
  const Data x = Random<float>({s.batch, from[0], from[1], from[2], s.in}, 1, -1, 1);
  const int64_t first = transposed ? s.out : s.in, last = transposed ? s.in : s.out;
  const Data f = Random<float>({s.filter[0], s.filter[1], s.filter[2], first, last}, 2, -1, 1);
  const Data b = Random<float>({s.out}, 3);
  const std::vector<float> vx = As<float>(x), vf = As<float>(f), vb = As<float>(b);
  std::vector<double> y(static_cast<size_t>(s.batch * Voxels(to) * s.out));
  for (size_t i = 0; i < y.size(); ++i) y[i] = s.bias ? vb[i % static_cast<size_t>(s.out)] : 0;
  for (int64_t n = 0; n < s.batch; ++n)
    ForEachPair(s, [&](int64_t large_at, int64_t small_at, int64_t tap) {
      const int64_t in = n * Voxels(from) + (transposed ? small_at : large_at),
                    out = n * Voxels(to) + (transposed ? large_at : small_at);
      for (int64_t o = 0; o < s.out; ++o)
        for (int64_t i = 0; i < s.in; ++i) {
          const int64_t weight = transposed ? (tap * s.out + o) * s.in + i : (tap * s.in + i) * s.out + o;
          y[static_cast<size_t>(out * s.out + o)] +=
              static_cast<double>(vx[static_cast<size_t>(in * s.in + i)]) * vf[static_cast<size_t>(weight)];
        }
    });
  std::vector<float> want;
  for (const double v : y) want.push_back(Activated(s, v));
  const Data result = F32({s.batch, to[0], to[1], to[2], s.out}, want.empty() ? std::vector<float>{0} : want);
  std::vector<Data> operands = {x, f, s.bias ? b : Absent()};
  if (transposed) {
    std::vector<int32_t> shape;
    for (const int64_t d : result.dims) shape.push_back(static_cast<int32_t>(d));
    operands = {I32({5}, shape), f, x, s.bias ? b : Absent()};
  }
  c.push_back({.name = name,
               .op = transposed ? "CONV_3D_TRANSPOSE" : "CONV_3D",
               .operands = operands,
               .attrs = Options(s),
               .results = {result},
               .atol = 1e-5,
               .rtol = 1e-5});
}

const std::vector<std::pair<std::string, Spec>>& Specs() {
  static const std::vector<std::pair<std::string, Spec>> specs = {
      {"same", {.size = {4, 5, 6}, .filter = {3, 3, 3}}},
      {"valid", {.size = {4, 5, 6}, .filter = {2, 3, 1}, .padding = "VALID"}},
      {"strided", {.size = {5, 6, 7}, .filter = {3, 2, 3}, .batch = 2, .stride = {2, 3, 2}}},
      {"strided valid", {.size = {5, 7, 6}, .filter = {2, 3, 3}, .stride = {1, 2, 3}, .padding = "VALID"}},
      {"dilated", {.size = {7, 6, 5}, .filter = {2, 3, 2}, .dilation = {3, 2, 2}}},
      {"pointwise", {.size = {2, 3, 2}, .filter = {1, 1, 1}, .in = 5, .out = 7, .bias = false}},
      {"one voxel", {.size = {1, 1, 1}, .filter = {3, 3, 3}, .in = 1, .out = 1}},
      {"with an activation", {.size = {3, 3, 3}, .filter = {2, 2, 2}, .activation = "RELU"}},
      {"nothing", {.size = {3, 3, 3}, .filter = {2, 2, 2}, .batch = 0}},
  };
  return specs;
}

const Suite kVolume("volume", [](Cases& c) {
  for (const auto& [name, spec] : Specs()) {
    Add(c, name, spec, false);
    Add(c, name, spec, true);
  }
  const Data x = F32({1, 2, 2, 2, 2}, {0}), f = F32({1, 1, 1, 3, 2}, {0});
  c.push_back({.name = "refuses other channels than the filter's",
               .op = "CONV_3D",
               .operands = {x, f},
               .attrs = Options({}),
               .error = "channels of the input and of the filter differ: 2 and 3"});
  c.push_back({.name = "refuses an output of another batch",
               .op = "CONV_3D_TRANSPOSE",
               .operands = {I32({5}, {2, 2, 2, 2, 3}), f, x},
               .attrs = Options({}),
               .error = "batch of the output shape and of the input differ: 2 and 1"});
});

}  // namespace
}  // namespace fusebox::conformance
