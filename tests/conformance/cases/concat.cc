// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kSuite("concat", [](Cases& c) {
  const Data a = F32({2, 2}, {1, 2, 3, 4}), b = F32({2, 1}, {5, 6}), e = F32({1, 2}, {5, 6});

  c.push_back({"last axis", "CONCATENATION", {a, b}, {{"axis", 1}}, {F32({2, 3}, {1, 2, 5, 3, 4, 6})}});
  c.push_back({"first axis, from the back",
               "CONCATENATION",
               {a, e},
               {{"axis", -2}},
               {F32({3, 2}, {1, 2, 3, 4, 5, 6})}});
  c.push_back({"one operand", "CONCATENATION", {a}, {{"axis", 0}}, {a}});
  c.push_back({"an empty one", "CONCATENATION", {a, F32({0, 2}, {0})}, {{"axis", 0}}, {a}});
  c.push_back({"three of i64",
               "CONCATENATION",
               {I64({1}, {1}), I64({2}, {2, 3}), I64({1}, {4})},
               {{"axis", 0}},
               {I64({4}, {1, 2, 3, 4})}});
  c.push_back({"quantized alike",
               "CONCATENATION",
               {I8({1}, {1}).Quantized(0.5f, 3), I8({1}, {2}).Quantized(0.5f, 3)},
               {{"axis", 0}},
               {I8({2}, {1, 2}).Quantized(0.5f, 3)}});
  c.push_back({.name = "quantized differently",
               .op = "CONCATENATION",
               .operands = {I8({1}, {1}).Quantized(0.5f, 3), I8({1}, {7}).Quantized(0.25f, 3)},
               .attrs = {{"axis", 0}},
               .results = {I8({2}, {1, 5}).Quantized(0.5f, 3)}});
  c.push_back({.name = "with an activation",
               .op = "CONCATENATION",
               .operands = {a},
               .attrs = {{"fused_activation_function", "RELU"}},
               .results = {a},
               .refused = "an activation"});
  c.push_back({.name = "other dims differ",
               .op = "CONCATENATION",
               .operands = {a, b},
               .attrs = {{"axis", 0}},
               .error = "differ: 2 and 1"});
  c.push_back({.name = "ranks differ",
               .op = "CONCATENATION",
               .operands = {a, F32({2}, {1, 2})},
               .attrs = {{"axis", 0}},
               .error = "has rank"});
  c.push_back({.name = "dtypes differ",
               .op = "CONCATENATION",
               .operands = {a, I32({2, 2}, {1})},
               .attrs = {{"axis", 0}},
               .error = "dtypes differ",
               .also_f64 = false});
  c.push_back({.name = "axis out of range",
               .op = "CONCATENATION",
               .operands = {a, b},
               .attrs = {{"axis", 2}},
               .error = "axis 2 is outside"});

  c.push_back({"front",
               "PACK",
               {F32({2}, {1, 2}), F32({2}, {3, 4})},
               {{"axis", 0}, {"values_count", 2}},
               {F32({2, 2}, {1, 2, 3, 4})}});
  c.push_back({"back",
               "PACK",
               {F32({2}, {1, 2}), F32({2}, {3, 4})},
               {{"axis", -1}, {"values_count", 2}},
               {F32({2, 2}, {1, 3, 2, 4})}});
  c.push_back(
      {"scalars", "PACK", {I32({}, {1}), I32({}, {2}), I32({}, {3})}, {{"axis", 0}}, {I32({3}, {1, 2, 3})}});
  c.push_back({.name = "shapes differ",
               .op = "PACK",
               .operands = {F32({2}, {1, 2}), F32({3}, {1})},
               .error = "differ: 2 and 3"});
  c.push_back({.name = "count lies",
               .op = "PACK",
               .operands = {F32({2}, {1, 2})},
               .attrs = {{"values_count", 2}},
               .error = "number of operands"});

  c.push_back({"rows", "UNPACK", {a}, {{"axis", 0}, {"num", 2}}, {F32({2}, {1, 2}), F32({2}, {3, 4})}});
  c.push_back({"columns", "UNPACK", {a}, {{"axis", -1}, {"num", 2}}, {F32({2}, {1, 3}), F32({2}, {2, 4})}});
  c.push_back({"to scalars", "UNPACK", {I32({2}, {8, 9})}, {{"num", 2}}, {I32({}, {8}), I32({}, {9})}});
  c.push_back(
      {.name = "another count", .op = "UNPACK", .operands = {a}, .results = {e}, .error = "differ: 2 and 1"});

  c.push_back({"columns",
               "SPLIT",
               {I32({}, {1}), F32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
               {{"num_splits", 2}},
               {F32({2, 2}, {1, 2, 5, 6}), F32({2, 2}, {3, 4, 7, 8})}});
  c.push_back({"rows, from the back",
               "SPLIT",
               {I32({1}, {-2}), a},
               {{"num_splits", 2}},
               {F32({1, 2}, {1, 2}), F32({1, 2}, {3, 4})}});
  c.push_back({"into one", "SPLIT", {I32({}, {0}), a}, {{"num_splits", 1}}, {a}});
  c.push_back({.name = "does not divide",
               .op = "SPLIT",
               .operands = {I32({}, {0}), F32({3}, {1})},
               .results = {b, b},
               .error = "cannot split 3 into 2"});
  c.push_back({.name = "axis out of range",
               .op = "SPLIT",
               .operands = {I32({}, {2}), a},
               .results = {b, b},
               .error = "axis 2 is outside"});

  c.push_back({"uneven",
               "SPLIT_V",
               {F32({2, 3}, {1, 2, 3, 4, 5, 6}), I32({2}, {1, 2}), I32({}, {1})},
               {{"num_splits", 2}},
               {F32({2, 1}, {1, 4}), F32({2, 2}, {2, 3, 5, 6})}});
  c.push_back({"works out -1",
               "SPLIT_V",
               {Iota<float>({5}), I64({3}, {1, -1, 0}), I32({}, {-1})},
               {{"num_splits", 3}},
               {F32({1}, {0}), F32({4}, {1, 2, 3, 4}), F32({0}, {0})}});
  c.push_back({.name = "too little",
               .op = "SPLIT_V",
               .operands = {Iota<float>({5}), I32({2}, {1, 2}), I32({}, {0})},
               .results = {b, b},
               .error = "sizes make 3, the dimension is 5"});
  c.push_back({.name = "too much",
               .op = "SPLIT_V",
               .operands = {Iota<float>({5}), I32({2}, {6, -1}), I32({}, {0})},
               .results = {b, b},
               .error = "sizes make 6"});
  c.push_back({.name = "two open",
               .op = "SPLIT_V",
               .operands = {Iota<float>({5}), I32({2}, {-1, -1}), I32({}, {0})},
               .results = {b, b},
               .error = "at most one -1"});
  c.push_back({.name = "another count",
               .op = "SPLIT_V",
               .operands = {Iota<float>({5}), I32({1}, {5}), I32({}, {0})},
               .results = {b, b},
               .error = "number of results"});
});

}  // namespace
}  // namespace fusebox::conformance
