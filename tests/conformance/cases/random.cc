// SPDX-License-Identifier: Apache-2.0
// Random numbers go on from call to call: what is expected is where they are. tests/peers/random_test.cc says
// which they are.
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kSuite("random", [](Cases& c) {
  for (const char* op : {"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"}) {
    const double wide = op[7] == 'U' ? 0.5 : 6.5, middle = op[7] == 'U' ? 0.5 : 0;
    const Data some = F32({7, 11}, {static_cast<float>(middle)});
    c.push_back({.name = "with seeds",
                 .op = op,
                 .operands = {I32({2}, {7, 11})},
                 .attrs = {{"seed", 3}, {"seed2", -5}},
                 .results = {some},
                 .atol = wide,
                 .also_f64 = false});
    c.push_back({.name = "without seeds",
                 .op = op,
                 .operands = {I64({2}, {7, 11})},
                 .results = {some},
                 .atol = wide,
                 .also_f64 = false});
    c.push_back({.name = "none",
                 .op = op,
                 .operands = {I32({2}, {3, 0})},
                 .results = {F32({3, 0}, {0})},
                 .also_f64 = false});
    c.push_back(
        {.name = "a negative shape", .op = op, .operands = {I32({1}, {-3})}, .error = "a dimension of -3"});
    c.push_back({.name = "too many",
                 .op = op,
                 .operands = {I64({2}, {int64_t{1} << 40, int64_t{1} << 40})},
                 .error = "overflows"});
    c.push_back({.name = "f64",
                 .op = op,
                 .operands = {I32({1}, {1})},
                 .results = {F64({1}, {0})},
                 .refused = "f64 is unsupported"});
  }
  const float never = -std::numeric_limits<float>::infinity();
  c.push_back({"one class that can be",
               "MULTINOMIAL",
               {F32({2, 3}, {never, 5, never, 0, never, never}), I32({}, {5})},
               {{"seed", 1}},
               {I64({2, 5}, {1, 1, 1, 1, 1, 0, 0, 0, 0, 0})}});
  c.push_back({"one class", "MULTINOMIAL", {F32({1, 1}, {0}), I32({}, {3})}, {}, {I32({1, 3}, {0})}});
  c.push_back({.name = "any class",
               .op = "MULTINOMIAL",
               .operands = {F32({1, 3}, {0.5f, 0, -1e30f}), I32({}, {50})},
               .results = {I32({1, 50}, {0})},
               .atol = 1});
  c.push_back({.name = "no class that can be",
               .op = "MULTINOMIAL",
               .operands = {F32({1, 2}, {never}), I32({}, {2})},
               .results = {I32({1, 2}, {1})}});
  c.push_back({"none", "MULTINOMIAL", {F32({2, 3}, {0}), I32({}, {0})}, {}, {I64({2, 0}, {0})}});
  c.push_back({"no rows", "MULTINOMIAL", {F32({0, 3}, {0}), I32({}, {2})}, {}, {I64({0, 2}, {0})}});
  c.push_back({.name = "no classes",
               .op = "MULTINOMIAL",
               .operands = {F32({2, 0}, {0}), I32({}, {1})},
               .results = {I64({2, 1}, {0})},
               .error = "no classes"});
  c.push_back({.name = "fewer than none",
               .op = "MULTINOMIAL",
               .operands = {F32({2, 3}, {0}), I32({}, {-1})},
               .results = {I64({2, 1}, {0})},
               .error = "-1 draws"});
  c.push_back({.name = "a list",
               .op = "MULTINOMIAL",
               .operands = {F32({3}, {0}), I32({}, {1})},
               .results = {I64({1, 1}, {0})},
               .error = "expected a matrix"});
  c.push_back({.name = "to floats",
               .op = "MULTINOMIAL",
               .operands = {F32({1, 3}, {0}), I32({}, {1})},
               .results = {F32({1, 1}, {0})},
               .refused = " is unsupported"});
});

}  // namespace
}  // namespace fusebox::conformance
