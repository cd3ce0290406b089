// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

// The definitions in long double, without any shift.
void Rows(Cases& c, std::vector<int64_t> dims, long double beta) {
  const Data x = Random<float>(dims, 9, -4, 4);
  const std::vector<float> values = As<float>(x);
  const auto length = static_cast<size_t>(dims.back());
  std::vector<float> soft, logs, unit;
  for (size_t row = 0; row < values.size(); row += length) {
    long double sum = 0, sum_one = 0, squares = 0;
    for (size_t k = row; k < row + length; ++k) {
      sum += expl(beta * values[k]);
      sum_one += expl(values[k]);
      squares += static_cast<long double>(values[k]) * values[k];
    }
    for (size_t k = row; k < row + length; ++k) {
      soft.push_back(static_cast<float>(expl(beta * values[k]) / sum));
      logs.push_back(static_cast<float>(values[k] - logl(sum_one)));
      unit.push_back(static_cast<float>(values[k] / sqrtl(squares)));
    }
  }
  const std::string name = "rows of " + std::to_string(length);
  c.push_back({.name = name,
               .op = "SOFTMAX",
               .operands = {x},
               .attrs = {{"beta", static_cast<double>(beta)}},
               .results = {F32(dims, soft)},
               .rtol = 3e-6});
  c.push_back(
      {.name = name, .op = "LOG_SOFTMAX", .operands = {x}, .results = {F32(dims, logs)}, .atol = 2e-6});
  c.push_back(
      {.name = name, .op = "L2_NORMALIZATION", .operands = {x}, .results = {F32(dims, unit)}, .rtol = 2e-6});
}

const Suite kSoftmax("softmax", [](Cases& c) {
  Rows(c, {7}, 1);
  Rows(c, {2, 3, 5}, 0.5L);
  Rows(c, {3, 1}, 1);
  Rows(c, {70, 2}, 1);
  Rows(c, {37, 7}, 1);
  Rows(c, {33, 31}, 1);
  Rows(c, {2, 2, 2, 2, 11}, 2);
  Rows(c, {41, 1003}, 1);
  c.push_back({.name = "large values",
               .op = "SOFTMAX",
               .operands = {F32({3}, {1000, 1000, -1000})},
               .attrs = {{"beta", 1.0}},
               .results = {F32({3}, {0.5f, 0.5f, 0})}});
  c.push_back(
      {.name = "no beta", .op = "SOFTMAX", .operands = {F32({2}, {1, 2})}, .results = {F32({2}, {0.5f})}});
  c.push_back({.name = "large values",
               .op = "LOG_SOFTMAX",
               .operands = {F32({3}, {1000, 1000, -1000})},
               .results = {F32({3}, {-0.69314718f, -0.69314718f, -2000.69314718f})},
               .rtol = 1e-6});
  c.push_back({.name = "zeros",
               .op = "L2_NORMALIZATION",
               .operands = {F32({2, 2}, {0, 0, 3, 4})},
               .results = {F32({2, 2}, {0, 0, 0.6f, 0.8f})},
               .rtol = 1e-6});
  for (const char* op : {"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"}) {
    c.push_back({.name = "nothing", .op = op, .operands = {F32({0, 3}, {0})}, .results = {F32({0, 3}, {0})}});
    c.push_back(
        {.name = "empty rows", .op = op, .operands = {F32({2, 0}, {0})}, .results = {F32({2, 0}, {0})}});
    c.push_back({.name = "a scalar", .op = op, .operands = {F32({}, {0})}, .error = "last dimension"});
    c.push_back({.name = "quantized", .op = op, .operands = {I8({2}, {1}).Quantized(1, 0)}, .refused = "i8"});
  }
});

// 3 / sqrt(1 + 2 (9 + 16)), 4 / sqrt(1 + 2 (9 + 16 + 144)), 12 / sqrt(1 + 2 (16 + 144))
const Suite kLocalResponse("local_response", [](Cases& c) {
  const std::vector<Attr> attrs = {{"radius", 1}, {"bias", 1.0}, {"alpha", 2.0}, {"beta", 0.5}};
  c.push_back({.name = "divides by what is near",
               .op = "LOCAL_RESPONSE_NORMALIZATION",
               .operands = {F32({1, 3}, {3, 4, 12})},
               .attrs = attrs,
               .results = {F32({1, 3}, {0.42008403f, 0.21725018f, 0.66977465f})},
               .rtol = 1e-6,
               .also_f64 = false});
  c.push_back({.name = "is one channel's own",
               .op = "LOCAL_RESPONSE_NORMALIZATION",
               .operands = {F32({2, 1}, {2, 0})},
               .attrs = attrs,
               .results = {F32({2, 1}, {0.6666667f, 0})},
               .rtol = 1e-6,
               .also_f64 = false});
  c.push_back({.name = "refuses a negative radius",
               .op = "LOCAL_RESPONSE_NORMALIZATION",
               .operands = {F32({1, 1}, {0})},
               .attrs = {{"radius", -1}},
               .error = "is -1"});
});

}  // namespace
}  // namespace fusebox::conformance
