// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddSelects(Cases& c) {
  const Data x = F32({2, 2}, {1, 2, 3, 4}), y = F32({2, 2}, {5, 6, 7, 8});
  c.push_back({"by element",
               "SELECT",
               {Bool({2, 2}, {true, false, false, true}), x, y},
               {},
               {F32({2, 2}, {1, 6, 7, 4})}});
  c.push_back({"by row", "SELECT", {Bool({2}, {false, true}), x, y}, {}, {F32({2, 2}, {5, 6, 3, 4})}});
  c.push_back({"by a scalar", "SELECT", {Bool({}, {true}), x, y}, {}, {x}});
  c.push_back({"scalars", "SELECT", {Bool({}, {false}), I64({}, {1}), I64({}, {2})}, {}, {I64({}, {2})}});
  c.push_back({"nothing", "SELECT", {Bool({0}, {true}), F32({0}, {0}), F32({0}, {0})}, {}, {F32({0}, {0})}});
  c.push_back({.name = "values of different shapes",
               .op = "SELECT",
               .operands = {Bool({}, {true}), x, F32({2, 1}, {1})},
               .error = "differ: 2 and 1"});
  c.push_back({.name = "condition of another shape",
               .op = "SELECT",
               .operands = {Bool({3}, {true}), x, y},
               .error = "differ: 2 and 3"});
  c.push_back({.name = "condition is not bool",
               .op = "SELECT",
               .operands = {I32({}, {1}), x, y},
               .results = {x},
               .refused = "dtype i32"});

  c.push_back({"no broadcasting",
               "SELECT_V2",
               {Bool({2, 2}, {true, false, false, true}), x, y},
               {},
               {F32({2, 2}, {1, 6, 7, 4})}});
  c.push_back({"condition by column",
               "SELECT_V2",
               {Bool({2}, {false, true}), x, y},
               {},
               {F32({2, 2}, {5, 2, 7, 4})}});
  c.push_back({"all three",
               "SELECT_V2",
               {Bool({2, 1}, {true, false}), F32({2}, {1, 2}), F32({}, {9})},
               {},
               {F32({2, 2}, {1, 2, 9, 9})}});
  c.push_back({"condition has the largest rank",
               "SELECT_V2",
               {Bool({1, 1, 2}, {true, false}), I32({}, {1}), I32({1}, {2})},
               {},
               {I32({1, 1, 2}, {1, 2})}});
  c.push_back({"scalars", "SELECT_V2", {Bool({}, {true}), U8({}, {1}), U8({}, {2})}, {}, {U8({}, {1})}});
  c.push_back(
      {"nothing", "SELECT_V2", {Bool({1}, {true}), F32({0}, {0}), F32({}, {0})}, {}, {F32({0}, {0})}});
  c.push_back(
      {"large", "SELECT_V2", {Bool({300, 1}, {true}), Iota<float>({1, 200}), F32({300, 200}, {0})}, {}, {[] {
         std::vector<float> v;
         for (int i = 0; i < 60000; ++i) v.push_back(static_cast<float>(i % 200));
         return F32({300, 200}, v);
       }()}});
  c.push_back({.name = "does not broadcast",
               .op = "SELECT_V2",
               .operands = {Bool({3}, {true}), x, y},
               .error = "do not broadcast"});
}

const Suite kSuite("select", [](Cases& c) {
  AddSelects(c);
  c.push_back({"bool", "WHERE", {Bool({2, 2}, {false, true, true, false})}, {}, {I64({2, 2}, {0, 1, 1, 0})}});
  c.push_back({"floats", "WHERE", {F32({4}, {0, -0.0f, 2, std::nanf("")})}, {}, {I64({2, 1}, {2, 3})}});
  c.push_back({"none", "WHERE", {I32({3}, {0})}, {}, {I64({0, 1}, {0})}});
  c.push_back({"of nothing", "WHERE", {Bool({0, 2}, {true})}, {}, {I64({0, 2}, {0})}});
  c.push_back({"a scalar", "WHERE", {Bool({}, {true})}, {}, {I64({1, 0}, {0})}});

  c.push_back({"largest first",
               "TOPK_V2",
               {F32({2, 4}, {1, 4, 2, 3, 8, 5, 6, 7}), I32({}, {2})},
               {},
               {F32({2, 2}, {4, 3, 8, 7}), I32({2, 2}, {1, 3, 0, 3})}});
  c.push_back({"equals: the first first",
               "TOPK_V2",
               {I32({5}, {1, 2, 2, 1, 2}), I32({1}, {4})},
               {},
               {I32({4}, {2, 2, 2, 1}), I32({4}, {1, 2, 4, 0})}});
  c.push_back({"all of them",
               "TOPK_V2",
               {I64({3}, {-1, INT64_MIN, INT64_MAX}), I32({}, {3})},
               {},
               {I64({3}, {INT64_MAX, -1, INT64_MIN}), I32({3}, {2, 0, 1})}});
  c.push_back({"NaN last",
               "TOPK_V2",
               {F32({3}, {std::nanf(""), 1, -HUGE_VALF}), I32({}, {3})},
               {},
               {F32({3}, {1, -HUGE_VALF, std::nanf("")}), I32({3}, {1, 2, 0})}});
  c.push_back(
      {"none", "TOPK_V2", {F32({2, 3}, {1}), I32({}, {0})}, {}, {F32({2, 0}, {0}), I32({2, 0}, {0})}});
  c.push_back({"many rows",
               "TOPK_V2",
               {Iota<float>({5000, 2}), I16({}, {1})},
               {},
               {Iota<float>({5000, 1}, 1, 2), I32({5000, 1}, {1})}});
  c.push_back({.name = "too many",
               .op = "TOPK_V2",
               .operands = {F32({3}, {1}), I32({}, {4})},
               .results = {F32({4}, {0}), I32({4}, {0})},
               .error = "k is 4 of 3"});
  c.push_back({.name = "negative",
               .op = "TOPK_V2",
               .operands = {F32({3}, {1}), I32({}, {-1})},
               .results = {F32({4}, {0}), I32({4}, {0})},
               .error = "k is -1 of 3"});
  c.push_back({.name = "a scalar",
               .op = "TOPK_V2",
               .operands = {F32({}, {1}), I32({}, {1})},
               .results = {F32({}, {0}), I32({}, {0})},
               .error = "is a scalar"});

  c.push_back({"in order of appearance",
               "UNIQUE",
               {I32({6}, {4, 1, 4, 2, 1, 4})},
               {{"idx_out_type", Dtype{FBX_I32}}},
               {I32({3}, {4, 1, 2}), I32({6}, {0, 1, 0, 2, 1, 0})}});
  c.push_back({"floats of both zeros, i64 indices",
               "UNIQUE",
               {F32({3}, {0, -0.0f, 1})},
               {{"idx_out_type", Dtype{FBX_I64}}},
               {F32({2}, {0, 1}), I64({3}, {0, 0, 1})}});
  c.push_back({"nothing", "UNIQUE", {F32({0}, {0})}, {}, {F32({0}, {0}), I32({0}, {0})}});
  c.push_back({"all different",
               "UNIQUE",
               {Iota<int64_t>({1000}, 7, 1 << 20)},
               {},
               {Iota<int64_t>({1000}, 7, 1 << 20), Iota<int32_t>({1000})}});
  c.push_back({.name = "a matrix",
               .op = "UNIQUE",
               .operands = {F32({1, 1}, {0})},
               .results = {F32({1}, {0}), I32({1}, {0})},
               .error = "expected a list, got rank 2"});
});

}  // namespace
}  // namespace fusebox::conformance
