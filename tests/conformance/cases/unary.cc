// SPDX-License-Identifier: Apache-2.0
// Ops on single elements, held against the mathematical function in long double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

using Function = long double (*)(long double);

// What is finite at the ends of the range: zeros, denormals, the least and the largest normal numbers, and
// what is on the way.
std::vector<float> Ends(bool negative) {
  std::vector<float> x = {0,      1e-45f, 1e-42f, 3e-39f,  0x1p-126f, 2e-38f,  1e-37f, 1e-30f,
                          1e-15f, 1e-6f,  1e6f,   1e15f,   1e25f,     1e30f,   1e35f,  1e37f,
                          8e37f,  9e37f,  1e38f,  1.7e38f, 2.4e38f,   2.6e38f, 3e38f,  0x1.fffffep127f};
  const size_t positive = x.size();
  for (size_t i = 0; negative && i < positive; ++i) x.push_back(-x[i]);
  x.resize((x.size() + 15) / 16 * 16 + 3, 1e38f);  // whole vectors, and a rest
  x[x.size() - 2] = 1e-42f;
  return x;
}

void AddEnds(Cases& c, const char* op, bool negative, Function f) {
  const std::vector<float> x = Ends(negative);
  std::vector<float> y;
  for (const float v : x) y.push_back(static_cast<float>(f(v)));
  const auto n = static_cast<int64_t>(x.size());
  // Denormal results may be zero.
  c.push_back({.name = "the ends of the range",
               .op = op,
               .operands = {F32({n}, x)},
               .results = {F32({n}, y)},
               .atol = 0x1p-126,
               .rtol = 4e-7,
               .also_f64 = false});
}

void Add(Cases& c, const char* op, std::vector<float> x, Function f) {
  AddEnds(c, op, std::any_of(x.begin(), x.end(), [](float v) { return v < 0; }), f);
  std::vector<float> y;
  for (const float v : x) y.push_back(static_cast<float>(f(v)));
  const auto n = static_cast<int64_t>(x.size());
  c.push_back({.name = "elements",
               .op = op,
               .operands = {F32({n}, x)},
               .results = {F32({n}, y)},
               .atol = 2e-7,
               .rtol = 4e-7});
  c.push_back(
      {.name = "nothing", .op = op, .operands = {F32({2, 0, 3}, {0})}, .results = {F32({2, 0, 3}, {0})}});
  c.push_back({.name = "a scalar",
               .op = op,
               .operands = {F32({}, {x[0]})},
               .results = {F32({}, {y[0]})},
               .atol = 2e-7,
               .rtol = 4e-7});
  c.push_back(
      {.name = "two operands", .op = op, .operands = {F32({1}, {1}), F32({1}, {1})}, .error = "operands"});
  c.push_back({.name = "f16", .op = op, .operands = {Data{FBX_F16, {1}, {0, 0}}}, .refused = "f16"});
  c.push_back(
      {.name = "quantized", .op = op, .operands = {I8({1}, {1}).Quantized(0.5f, 0)}, .refused = "i8"});

  Data big = Random<float>({17, 5, 401}, 3, x[0] < 0 ? -3 : 0.25, 3), want = big;
  std::vector<float> values;
  for (const float v : As<float>(big)) values.push_back(static_cast<float>(f(v)));
  c.push_back({.name = "many elements",
               .op = op,
               .operands = {big},
               .results = {F32({17, 5, 401}, values)},
               .atol = 3e-7,
               .rtol = 1e-6});
}

const Suite kUnary("unary", [](Cases& c) {
  Add(c, "EXP", {-1, 0, 1, -0.5f, 10.25f, -20, 88.5f, -87, -kInf, kInf, kNaN},
      [](long double x) { return expl(x); });
  Add(c, "LOG", {0.5f, 1, 2, 1e-30f, 3e30f, 0, kInf, kNaN}, [](long double x) { return logl(x); });
  Add(c, "SQRT", {0.25f, 0, 4, 2, 1e-30f, kInf, kNaN}, [](long double x) { return sqrtl(x); });
  Add(c, "RSQRT", {0.25f, 1, 4, 2, 1e-30f, kInf, kNaN}, [](long double x) { return 1 / sqrtl(x); });
  Add(c, "SQUARE", {-3, 0, 0.5f, 1e18f, -kInf, kNaN}, [](long double x) { return x * x; });
  Add(c, "ABS", {-3, -0.0f, 0.5f, -kInf, kNaN}, [](long double x) { return fabsl(x); });
  Add(c, "NEG", {-3, 0, 0.5f, -kInf, kNaN}, [](long double x) { return -x; });
  Add(c, "SIN", {-3, 0, 0.5f, 100, -1e4f, kNaN}, [](long double x) { return sinl(x); });
  Add(c, "COS", {-3, 0, 0.5f, 100, -1e4f, kNaN}, [](long double x) { return cosl(x); });
  Add(c, "FLOOR", {-1.5f, -1, -0.25f, 0, 0.75f, 2.5f, -kInf, kNaN}, [](long double x) { return floorl(x); });
  Add(c, "CEIL", {-1.5f, -1, -0.25f, 0, 0.75f, 2.5f, kInf, kNaN}, [](long double x) { return ceill(x); });
  Add(c, "SIGN", {-3, 0, 0.5f, -0.0f, kInf, -kInf, kNaN},
      [](long double x) { return std::isnan(x) ? x : static_cast<long double>((x > 0) - (x < 0)); });
  Add(c, "ROUND", {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 2.51f, 0.49f, kInf, kNaN}, [](long double x) {
    const long double down = floorl(x), rest = x - down;
    if (rest != 0.5L) return rest < 0.5L || std::isinf(x) ? down : down + 1;
    return fmodl(down, 2) == 0 ? down : down + 1;
  });

  const int32_t low = std::numeric_limits<int32_t>::min();
  c.push_back({.name = "i32",
               .op = "ABS",
               .operands = {I32({4}, {-3, 0, 7, low})},
               .results = {I32({4}, {3, 0, 7, low})}});
  c.push_back({.name = "i64",
               .op = "NEG",
               .operands = {I64({3}, {-3, 0, 1ll << 40})},
               .results = {I64({3}, {3, 0, -(1ll << 40)})}});
  c.push_back(
      {.name = "i32", .op = "NEG", .operands = {I32({2}, {low, 5})}, .results = {I32({2}, {low, -5})}});
  c.push_back(
      {.name = "i32", .op = "SIGN", .operands = {I32({3}, {low, 0, 9})}, .results = {I32({3}, {-1, 0, 1})}});
});

long double Clip(long double x, long double low, long double high) {
  return x < low ? low : x > high ? high : x;
}

const Suite kActivation("activation", [](Cases& c) {
  const std::vector<float> x = {-7, -3,   -1.5f, -1, -0.5f, -0.0f, 0,    0.25f,
                                1,  2.5f, 3,     6,  6.5f,  20,    kInf, kNaN};
  std::vector<float> all = x;
  all.push_back(-kInf);
  all.push_back(-100);
  Add(c, "RELU", all, [](long double v) { return v < 0 ? 0.0L : v; });
  Add(c, "RELU6", all, [](long double v) { return Clip(v, 0, 6); });
  Add(c, "RELU_N1_TO_1", all, [](long double v) { return Clip(v, -1, 1); });
  Add(c, "RELU_0_TO_1", all, [](long double v) { return Clip(v, 0, 1); });
  Add(c, "ELU", all, [](long double v) { return v < 0 ? expm1l(v) : v; });
  Add(c, "TANH", all, [](long double v) { return tanhl(v); });
  Add(c, "LOGISTIC", all, [](long double v) { return 1 / (1 + expl(-v)); });
  Add(c, "HARD_SWISH", x, [](long double v) { return v * Clip(v + 3, 0, 6) / 6; });
  Add(c, "GELU", x, [](long double v) { return 0.5L * v * erfcl(-v * sqrtl(0.5L)); });
  c.push_back({.name = "tiny",
               .op = "TANH",
               .operands = {F32({4}, {1e-6f, -3e-4f, 0.02f, 1e-30f})},
               .results = {F32({4}, {1e-6f, -2.9999999e-4f, 0.0199973340f, 1e-30f})},
               .rtol = 1e-6});
  c.push_back({.name = "approximate",
               .op = "GELU",
               .operands = {F32({4}, {-1, 0, 1, 3})},
               .attrs = {{"approximate", true}},
               .results = {F32({4}, {-0.15880801f, 0, 0.84119199f, 2.99636261f})},
               .atol = 2e-7,
               .rtol = 1e-6});

  c.push_back({.name = "a slope",
               .op = "LEAKY_RELU",
               .operands = {F32({2, 3}, {-2, -0.5f, 0, 1, 4, kNaN})},
               .attrs = {{"alpha", 0.25}},
               .results = {F32({2, 3}, {-0.5f, -0.125f, 0, 1, 4, kNaN})}});
  c.push_back({.name = "no slope",
               .op = "LEAKY_RELU",
               .operands = {F32({2}, {-2, 3})},
               .results = {F32({2}, {0, 3})}});

  c.push_back({.name = "by channel",
               .op = "PRELU",
               .operands = {F32({1, 2, 1, 3}, {-1, -2, -3, 1, -4, 0}), F32({1, 1, 3}, {0.5f, 2, 10})},
               .results = {F32({1, 2, 1, 3}, {-0.5f, -4, -30, 1, -8, 0})}});
  c.push_back({.name = "one for all",
               .op = "PRELU",
               .operands = {F32({3}, {-1, 2, -3}), F32({1}, {3})},
               .results = {F32({3}, {-3, 2, -9})}});
  c.push_back({.name = "by row",
               .op = "PRELU",
               .operands = {F32({2, 2}, {-1, 2, -3, -4}), F32({2, 1}, {3, 5})},
               .results = {F32({2, 2}, {-3, 2, -15, -20})}});
  c.push_back({.name = "nothing",
               .op = "PRELU",
               .operands = {F32({0, 3}, {0}), F32({3}, {1})},
               .results = {F32({0, 3}, {0})}});
  c.push_back({.name = "alpha is larger",
               .op = "PRELU",
               .operands = {F32({1, 1}, {1}), F32({1, 3}, {1})},
               .error = "does not broadcast"});
  c.push_back({.name = "alpha of more dims",
               .op = "PRELU",
               .operands = {F32({3}, {1}), F32({1, 3}, {1})},
               .error = "does not broadcast"});
});

}  // namespace
}  // namespace fusebox::conformance
