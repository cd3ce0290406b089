// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kLow = std::numeric_limits<int32_t>::min(), kHigh = std::numeric_limits<int32_t>::max();

void F(Cases& c, const char* op, std::vector<float> x, std::vector<float> y, std::vector<float> z) {
  const auto n = static_cast<int64_t>(x.size());
  c.push_back({.name = "f32",
               .op = op,
               .operands = {F32({n}, x), F32({n}, y)},
               .results = {F32({n}, z)},
               .rtol = 3e-7});
  c.push_back({.name = "nothing",
               .op = op,
               .operands = {F32({0, 3}, {0}), F32({3}, {1})},
               .results = {F32({0, 3}, {0})}});
  c.push_back({.name = "scalars",
               .op = op,
               .operands = {F32({}, {x[0]}), F32({}, {y[0]})},
               .results = {F32({}, {z[0]})},
               .rtol = 3e-7});
  c.push_back({.name = "shapes",
               .op = op,
               .operands = {F32({2, 3}, {1}), F32({2}, {1})},
               .error = "do not broadcast"});
  c.push_back({.name = "dtypes",
               .op = op,
               .operands = {F32({1}, {1}), F64({1}, {1})},
               .error = "dtypes differ",
               .also_f64 = false});
  c.push_back({.name = "one operand", .op = op, .operands = {F32({1}, {1})}, .error = "operands"});
  c.push_back({.name = "f16",
               .op = op,
               .operands = {Data{FBX_F16, {1}, {0, 0}}, Data{FBX_F16, {1}, {0, 0}}},
               .refused = "f16"});
  c.push_back({.name = "quantized",
               .op = op,
               .operands = {I8({1}, {1}).Quantized(1, 0), I8({1}, {1}).Quantized(1, 0)},
               .refused = "i8"});
}

void I(Cases& c, const char* op, std::vector<int32_t> x, std::vector<int32_t> y, std::vector<int32_t> z) {
  const auto n = static_cast<int64_t>(x.size());
  c.push_back({.name = "i32", .op = op, .operands = {I32({n}, x), I32({n}, y)}, .results = {I32({n}, z)}});
}

// Every pair of numbers from zero to the largest, both signs. Results may be zero where they are denormal.
void Ends(Cases& c, const char* op, double (*f)(double, double)) {
  std::vector<float> x, y, z;
  for (const float size :
       {0.0f, 0x1p-126f, 2e-38f, 1e-30f, 1e-15f, 1.0f, 3.0f, 1e15f, 1e19f, 1e30f, 1e38f, 0x1.fffffep127f}) {
    for (const float v : {size, -size}) x.push_back(v);
  }
  const std::vector<float> each = x;
  x.clear();
  for (const float a : each) {
    for (const float b : each) {
      x.push_back(a);
      y.push_back(b);
      z.push_back(static_cast<float>(f(double{a}, double{b})));
    }
  }
  const auto n = static_cast<int64_t>(x.size());
  c.push_back({.name = "the ends of the range",
               .op = op,
               .operands = {F32({n}, x), F32({n}, y)},
               .results = {F32({n}, z)},
               .atol = 0x1p-126,
               .rtol = 3e-7,
               .also_f64 = false});
}

// Runs of `channels` elements: an operand that repeats for all rows, and one with a value per row.
void ShortRuns(Cases& c, int64_t rows, int64_t channels) {
  const Data x = Random<float>({rows, channels}, 1), repeated = Random<float>({channels}, 2),
             of_row = Random<float>({rows, 1}, 3);
  const std::vector<float> values = As<float>(x), a = As<float>(repeated), b = As<float>(of_row);
  std::vector<float> times, minus, outer;
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i / static_cast<size_t>(channels), channel = i % static_cast<size_t>(channels);
    times.push_back(values[i] * a[channel]);
    minus.push_back(b[row] - values[i]);
    outer.push_back(a[channel] + b[row]);
  }
  const std::string name = "runs of " + std::to_string(channels);
  c.push_back({name + ", repeated", "MUL", {x, repeated}, {}, {F32({rows, channels}, times)}});
  c.push_back({name + ", one value each", "SUB", {of_row, x}, {}, {F32({rows, channels}, minus)}});
  c.push_back({name + ", both broadcast", "ADD", {repeated, of_row}, {}, {F32({rows, channels}, outer)}});
}

const Suite kArithmetic("binary", [](Cases& c) {
  ShortRuns(c, 700, 3);
  ShortRuns(c, 90, 15);
  ShortRuns(c, 5, 40);
  Ends(c, "ADD", [](double x, double y) { return x + y; });
  Ends(c, "SUB", [](double x, double y) { return x - y; });
  Ends(c, "MUL", [](double x, double y) { return x * y; });
  Ends(c, "DIV", [](double x, double y) { return x / y; });
  Ends(c, "MAXIMUM", [](double x, double y) { return std::max(x, y); });
  Ends(c, "MINIMUM", [](double x, double y) { return std::min(x, y); });
  Ends(c, "SQUARED_DIFFERENCE", [](double x, double y) { return (x - y) * (x - y); });
  F(c, "ADD", {1, -2, kInf, kNaN}, {0.5f, 5, 1, 1}, {1.5f, 3, kInf, kNaN});
  F(c, "SUB", {1, -2, kInf, kInf}, {0.5f, 5, 1, kInf}, {0.5f, -7, kInf, kNaN});
  F(c, "MUL", {3, -2, kInf, 0}, {0.5f, 5, 0, 7}, {1.5f, -10, kNaN, 0});
  F(c, "DIV", {3, -2, 1, 0}, {2, 4, 0, 0}, {1.5f, -0.5f, kInf, kNaN});
  F(c, "MAXIMUM", {3, -2, kInf, -kInf, 1}, {2, 4, 0, 5, -kInf}, {3, 4, kInf, 5, 1});
  F(c, "MINIMUM", {3, -2, kInf, -kInf, 1}, {2, 4, 0, 5, kInf}, {2, -2, 0, -kInf, 1});
  F(c, "SQUARED_DIFFERENCE", {3, -2, 0.5f}, {5, 1, 0.25f}, {4, 9, 0.0625f});
  F(c, "FLOOR_DIV", {7, -7, 7, -7, 1}, {2, 2, -2, -2, 0}, {3, -4, -4, 3, kInf});
  F(c, "FLOOR_MOD", {7, -7, 7, -7, 5.5f, 6}, {3, 3, -3, -3, 2, 3}, {1, 2, -2, -1, 1.5f, 0});
  F(c, "POW", {2, 4, -2, 0, 9}, {3, 0.5f, 3, 0, -1}, {8, 2, -8, 1, 1 / 9.0f});
  F(c, "ATAN2", {1, -1, 0, 1}, {1, -1, -1, 0}, {0.785398163f, -2.35619449f, 3.14159265f, 1.57079633f});

  I(c, "ADD", {1, kHigh}, {2, 1}, {3, kLow});
  I(c, "SUB", {1, kLow}, {2, 1}, {-1, kHigh});
  I(c, "MUL", {3, kHigh}, {-2, 2}, {-6, -2});
  I(c, "DIV", {7, -7, kLow}, {2, 2, -1}, {3, -3, kLow});
  I(c, "MAXIMUM", {7, -7}, {2, 2}, {7, 2});
  I(c, "MINIMUM", {7, -7}, {2, 2}, {2, -7});
  I(c, "SQUARED_DIFFERENCE", {3, -2}, {5, 1}, {4, 9});
  I(c, "FLOOR_DIV", {7, -7, 7, -7, 6, kLow}, {2, 2, -2, -2, -3, -1}, {3, -4, -4, 3, -2, kLow});
  I(c, "FLOOR_MOD", {7, -7, 7, -7, 6, kLow}, {3, 3, -3, -3, 3, -1}, {1, 2, -2, -1, 0, 0});
  I(c, "POW", {2, -3, 0, 7, 46341}, {10, 3, 0, 0, 2}, {1024, -27, 1, 1, -2147479015});
  c.push_back({.name = "i64",
               .op = "MUL",
               .operands = {I64({2}, {1ll << 40, 3}), I64({}, {5})},
               .results = {I64({2}, {5ll << 40, 15})}});
  c.push_back({.name = "u8",
               .op = "MAXIMUM",
               .operands = {U8({2}, {200, 3}), U8({2}, {100, 5})},
               .results = {U8({2}, {200, 5})}});
  for (const char* op : {"DIV", "FLOOR_DIV", "FLOOR_MOD"})
    c.push_back({.name = "by zero",
                 .op = op,
                 .operands = {I32({2}, {1, 2}), I32({2}, {1, 0})},
                 .results = {I32({2}, {0})},
                 .error = "division by zero"});
  c.push_back({.name = "negative power",
               .op = "POW",
               .operands = {I32({1}, {2}), I32({1}, {-1})},
               .results = {I32({1}, {0})},
               .error = "negative power"});
  c.push_back(
      {.name = "bool", .op = "ADD", .operands = {Bool({1}, {true}), Bool({1}, {true})}, .refused = "bool"});
});

const Suite kFused("fused activations", [](Cases& c) {
  const Data x = F32({5}, {-7, -0.5f, 0, 2, 9}), zero = F32({}, {0});
  const auto add = [&](const char* name, std::vector<float> y) {
    c.push_back({.name = name,
                 .op = "ADD",
                 .operands = {x, zero},
                 .attrs = {{"fused_activation_function", name}},
                 .results = {F32({5}, y)},
                 .rtol = 3e-7});
  };
  add("NONE", {-7, -0.5f, 0, 2, 9});
  add("RELU", {0, 0, 0, 2, 9});
  add("RELU6", {0, 0, 0, 2, 6});
  add("RELU_N1_TO_1", {-1, -0.5f, 0, 1, 1});
  add("TANH", {-0.99999834f, -0.46211716f, 0, 0.96402758f, 0.99999997f});
  for (const char* op : {"SUB", "MUL", "DIV"})
    c.push_back({.name = "RELU6",
                 .op = op,
                 .operands = {F32({3}, {-9, 3, 60}), F32({}, {1})},
                 .attrs = {{"fused_activation_function", "RELU6"}},
                 .results = {F32({3}, {0, std::string(op) == "SUB" ? 2.0f : 3.0f, 6})}});
  c.push_back({.name = "i32 RELU",
               .op = "ADD",
               .operands = {I32({2}, {-7, 7}), I32({}, {1})},
               .attrs = {{"fused_activation_function", "RELU"}},
               .results = {I32({2}, {0, 8})}});
  c.push_back({.name = "i32 TANH",
               .op = "ADD",
               .operands = {I32({1}, {1}), I32({1}, {1})},
               .attrs = {{"fused_activation_function", "TANH"}},
               .refused = "TANH"});
  c.push_back({.name = "floats, as doubles divide them",
               .op = "FLOOR_DIV",
               .operands = {F32({2}, {1, -1}), F32({}, {0.1f})},
               .results = {F32({2}, {9, -10})},
               .also_f64 = false});
  c.push_back({.name = "i32 with a scale left behind",
               .op = "ADD",
               .operands = {I32({2}, {1, 2}).Quantized(0.5f, 0), I32({}, {3}).Quantized(0.25f, 0)},
               .results = {I32({2}, {4, 5}).Quantized(0.125f, 0)}});
  c.push_back({.name = "SIGN_BIT",
               .op = "MUL",
               .operands = {x, zero},
               .attrs = {{"fused_activation_function", "SIGN_BIT"}},
               .refused = "SIGN_BIT"});
});

// The definition: indices of the result, modulo the operands' dims.
void Broadcasts(Cases& c, std::vector<int64_t> a, std::vector<int64_t> b) {
  const Data x = Random<float>(a, 1), y = Random<float>(b, 2);
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(a[i] == 1 ? b[i] : a[i]);
  std::vector<float> z, vx = As<float>(x), vy = As<float>(y);
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  for (int64_t i = 0; i < count; ++i) {
    size_t at = 0, bt = 0, step_a = 1, step_b = 1;
    int64_t rest = i;
    for (size_t d = rank; d-- > 0; rest /= dims[d]) {
      at += static_cast<size_t>(rest % dims[d] % a[d]) * step_a;
      bt += static_cast<size_t>(rest % dims[d] % b[d]) * step_b;
      step_a *= static_cast<size_t>(a[d]);
      step_b *= static_cast<size_t>(b[d]);
    }
    z.push_back(vx[at] - vy[bt]);
  }
  c.push_back({.name = "broadcast to " + std::to_string(z.size()),
               .op = "SUB",
               .operands = {x, y},
               .results = {F32(dims, z)}});
}

const Suite kBroadcast("broadcast", [](Cases& c) {
  Broadcasts(c, {2, 3, 4}, {4});
  Broadcasts(c, {4}, {2, 3, 4});
  Broadcasts(c, {2, 3, 4}, {3, 1});
  Broadcasts(c, {2, 1, 4}, {1, 3, 1});
  Broadcasts(c, {5, 1}, {1, 7});
  Broadcasts(c, {2, 3, 1, 5, 1}, {3, 4, 1, 6});
  Broadcasts(c, {1, 1, 1}, {});
  Broadcasts(c, {300, 200}, {200});
  Broadcasts(c, {300, 1}, {300, 200});
  Broadcasts(c, {2, 1, 2, 1, 2, 1, 2, 1}, {1, 2, 1, 2, 1, 2, 1, 2});
});

const Suite kAddN("add_n", [](Cases& c) {
  c.push_back({.name = "three",
               .op = "ADD_N",
               .operands = {F32({2}, {1, 2}), F32({2}, {10, 20}), F32({2}, {100, 200})},
               .results = {F32({2}, {111, 222})}});
  c.push_back({.name = "one", .op = "ADD_N", .operands = {I32({2}, {1, 2})}, .results = {I32({2}, {1, 2})}});
  c.push_back({.name = "none", .op = "ADD_N", .operands = {}, .error = "operands"});
  c.push_back(
      {.name = "shapes", .op = "ADD_N", .operands = {F32({2}, {1}), F32({3}, {1})}, .error = "differ"});
});

}  // namespace
}  // namespace fusebox::conformance
