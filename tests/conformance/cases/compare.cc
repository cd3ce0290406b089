// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kSuite("compare", [](Cases& c) {
  struct Relation {
    const char* op;
    bool less, equal, greater, with_nan;
  };
  for (const Relation& r :
       {Relation{"EQUAL", false, true, false, false}, Relation{"NOT_EQUAL", true, false, true, true},
        Relation{"LESS", true, false, false, false}, Relation{"LESS_EQUAL", true, true, false, false},
        Relation{"GREATER", false, false, true, false},
        Relation{"GREATER_EQUAL", false, true, true, false}}) {
    const std::vector<bool> three = {r.less, r.equal, r.greater};
    c.push_back({"floats", r.op, {F32({3}, {-1, 2, 3}), F32({3}, {1, 2, -3})}, {}, {Bool({3}, three)}});
    c.push_back({"NaN and both zeros",
                 r.op,
                 {F32({2}, {std::nanf(""), 0}), F32({2}, {std::nanf(""), -0.0f})},
                 {},
                 {Bool({2}, {r.with_nan, r.equal})}});
    c.push_back({"i64 with a scalar",
                 r.op,
                 {I64({3}, {INT64_MIN, 5, INT64_MAX}), I64({}, {5})},
                 {},
                 {Bool({3}, three)}});
    c.push_back({"a scalar on the left", r.op, {I32({}, {5}), I32({3}, {6, 5, -6})}, {}, {Bool({3}, three)}});
    c.push_back({"u8 is unsigned", r.op, {U8({1}, {1}), U8({1}, {255})}, {}, {Bool({1}, {r.less})}});
    c.push_back({"rows and columns",
                 r.op,
                 {I32({2, 1}, {1, 2}), I32({2}, {1, 2})},
                 {},
                 {Bool({2, 2}, {r.equal, r.less, r.greater, r.equal})}});
    c.push_back({"nothing", r.op, {F32({0, 2}, {0}), F32({1, 1}, {0})}, {}, {Bool({0, 2}, {false})}});
    c.push_back({.name = "do not broadcast",
                 .op = r.op,
                 .operands = {F32({3}, {0}), F32({2}, {0})},
                 .error = "shapes [3] and [2] do not broadcast"});
    c.push_back({.name = "dtypes differ",
                 .op = r.op,
                 .operands = {F32({1}, {0}), I32({1}, {0})},
                 .error = "dtypes differ",
                 .also_f64 = false});
  }
  c.push_back({"i64 with scales left behind",
               "EQUAL",
               {I64({2}, {1, 2}).Quantized(0.5f, 0), I64({2}, {1, 1}).Quantized(0.25f, 0)},
               {},
               {Bool({2}, {true, false})}});
  c.push_back({"i32 with a scale left behind",
               "EQUAL",
               {I32({2}, {1, 2}).Quantized(0.5f, 0), I32({2}, {1, 1})},
               {},
               {Bool({2}, {true, false})}});
  c.push_back(
      {"bool", "EQUAL", {Bool({2}, {true, false}), Bool({2}, {true, true})}, {}, {Bool({2}, {true, false})}});
  c.push_back({.name = "bool",
               .op = "LESS",
               .operands = {Bool({1}, {true}), Bool({1}, {true})},
               .results = {Bool({1}, {true})},
               .refused = "dtype bool"});

  const Data a = Bool({4}, {false, false, true, true}), b = Bool({4}, {false, true, false, true});
  c.push_back({"truth table", "LOGICAL_AND", {a, b}, {}, {Bool({4}, {false, false, false, true})}});
  c.push_back({"truth table", "LOGICAL_OR", {a, b}, {}, {Bool({4}, {false, true, true, true})}});
  c.push_back({"broadcast",
               "LOGICAL_AND",
               {a, Bool({1, 1}, {true})},
               {},
               {Bool({1, 4}, {false, false, true, true})}});
  c.push_back({"truth table", "LOGICAL_NOT", {a}, {}, {Bool({4}, {true, true, false, false})}});
  c.push_back({"nothing", "LOGICAL_NOT", {Bool({0}, {true})}, {}, {Bool({0}, {true})}});
  c.push_back({.name = "not bool",
               .op = "LOGICAL_NOT",
               .operands = {I32({1}, {1})},
               .results = {I32({1}, {1})},
               .refused = "dtype i32"});
  c.push_back({"i32", "BITWISE_XOR", {I32({2}, {5, -1}), I32({2}, {3, 1})}, {}, {I32({2}, {6, -2})}});
  c.push_back({"u8 with a scalar",
               "BITWISE_XOR",
               {U8({2}, {0xF0, 0x0F}), U8({}, {0xFF})},
               {},
               {U8({2}, {0x0F, 0xF0})}});
  c.push_back({"bool", "BITWISE_XOR", {a, b}, {}, {Bool({4}, {false, true, true, false})}});
  c.push_back({.name = "floats",
               .op = "BITWISE_XOR",
               .operands = {F32({1}, {1}), F32({1}, {1})},
               .results = {F32({1}, {1})},
               .refused = "dtype f"});
});

}  // namespace
}  // namespace fusebox::conformance
