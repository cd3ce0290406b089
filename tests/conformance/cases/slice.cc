// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

Case Strided(std::string name, Data in, std::vector<int32_t> begin, std::vector<int32_t> end,
             std::vector<int32_t> strides, std::vector<Attr> attrs, Data result) {
  const auto n = static_cast<int64_t>(begin.size());
  return {std::move(name),
          "STRIDED_SLICE",
          {std::move(in), I32({n}, begin), I32({n}, end), I32({n}, strides)},
          std::move(attrs),
          {std::move(result)}};
}

Case StridedError(std::string name, Data in, std::vector<int32_t> begin, std::vector<int32_t> end,
                  std::vector<int32_t> strides, std::vector<Attr> attrs, std::string error) {
  Case c = Strided(std::move(name), std::move(in), std::move(begin), std::move(end), std::move(strides),
                   std::move(attrs), F32({}, {0}));
  c.error = std::move(error);
  return c;
}

void AddSlices(Cases& c) {
  const Data m = Iota<float>({3, 4});
  c.push_back({"a box", "SLICE", {m, I32({2}, {1, 1}), I32({2}, {2, 2})}, {}, {F32({2, 2}, {5, 6, 9, 10})}});
  c.push_back({"to the end, i64",
               "SLICE",
               {m, I64({2}, {2, 1}), I64({2}, {-1, -1})},
               {},
               {F32({1, 3}, {9, 10, 11})}});
  c.push_back(
      {"nothing at the end", "SLICE", {m, I32({2}, {3, 0}), I32({2}, {0, 4})}, {}, {F32({0, 4}, {0})}});
  c.push_back({"a scalar", "SLICE", {F32({}, {3}), I32({0}, {0}), I32({0}, {0})}, {}, {F32({}, {3})}});
  c.push_back({"rank 5",
               "SLICE",
               {Iota<float>({1, 2, 2, 2, 2}), I32({5}, {0, 1, 0, 1, 0}), I32({5}, {1, 1, 2, 1, -1})},
               {},
               {F32({1, 1, 2, 1, 2}, {10, 11, 14, 15})}});
  c.push_back({.name = "begins outside",
               .op = "SLICE",
               .operands = {m, I32({2}, {4, 0}), I32({2}, {0, 1})},
               .error = "begin 4 of dimension 3"});
  c.push_back({.name = "begins before",
               .op = "SLICE",
               .operands = {m, I32({2}, {-1, 0}), I32({2}, {1, 1})},
               .error = "begin -1 of dimension 3"});
  c.push_back({.name = "ends outside",
               .op = "SLICE",
               .operands = {m, I32({2}, {2, 0}), I32({2}, {2, 1})},
               .error = "size 2 from 2 on of dimension 3"});
  c.push_back({.name = "negative size",
               .op = "SLICE",
               .operands = {m, I32({2}, {0, 0}), I32({2}, {-2, 1})},
               .error = "a size of -2"});
  c.push_back({.name = "another rank",
               .op = "SLICE",
               .operands = {m, I32({1}, {0}), I32({1}, {1})},
               .error = "1 values for rank 2"});
}

void AddStridedSlices(Cases& c) {
  const Data v = Iota<float>({5}), m = Iota<float>({2, 3}), t = Iota<float>({2, 2, 3});
  c.push_back(Strided("every second", v, {0}, {5}, {2}, {}, F32({3}, {0, 2, 4})));
  c.push_back(Strided("backwards", v, {-1}, {-4}, {-1}, {}, F32({3}, {4, 3, 2})));
  c.push_back(Strided("all of it backwards", v, {0}, {0}, {-1}, {{"begin_mask", 1}, {"end_mask", 1}},
                      F32({5}, {4, 3, 2, 1, 0})));
  c.push_back(Strided("backwards by two", v, {9}, {-9}, {-2}, {}, F32({3}, {4, 2, 0})));
  c.push_back(Strided("clamped", v, {-100}, {100}, {3}, {}, F32({2}, {0, 3})));
  c.push_back(Strided("extremes", v, {INT32_MIN}, {INT32_MAX}, {INT32_MAX}, {}, F32({1}, {0})));
  c.push_back(Strided("extremes, backwards", v, {INT32_MAX}, {INT32_MIN}, {INT32_MIN}, {}, F32({1}, {4})));
  c.push_back(Strided("nothing", v, {3}, {2}, {1}, {}, F32({0}, {0})));
  c.push_back(Strided("nothing of nothing", F32({0, 2}, {0}), {0, 0}, {4, 2}, {1, 1}, {}, F32({0, 2}, {0})));
  c.push_back(Strided("fewer than the rank", t, {1}, {2}, {1}, {}, F32({1, 2, 3}, {6, 7, 8, 9, 10, 11})));
  c.push_back(Strided("shrinks", m, {1, 0}, {2, 3}, {1, 1}, {{"shrink_axis_mask", 1}}, F32({3}, {3, 4, 5})));
  c.push_back(Strided("shrinks what begins at the first", m, {1, 0}, {2, 3}, {1, 1},
                      {{"begin_mask", 1}, {"shrink_axis_mask", 1}}, F32({3}, {0, 1, 2})));
  c.push_back(Strided("shrinks from the back, whatever end says", m, {-1, -2}, {0, 0}, {1, 1},
                      {{"shrink_axis_mask", 3}}, F32({}, {4})));
  c.push_back(Strided("ellipsis in front", t, {0, 1}, {0, 2}, {1, 1},
                      {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}}, F32({2, 2}, {1, 4, 7, 10})));
  c.push_back(Strided("ellipsis in the middle", t, {1, 0, 0}, {2, 0, 2}, {1, 1, 1}, {{"ellipsis_mask", 2}},
                      F32({1, 2, 2}, {6, 7, 9, 10})));
  c.push_back(Strided("ellipsis for nothing", m, {0, 0, 1}, {2, 0, 2}, {1, 1, 1}, {{"ellipsis_mask", 2}},
                      F32({2, 1}, {1, 4})));
  c.push_back(Strided("new axes", m, {0, 0, 1}, {0, 2, 3}, {1, 1, 1}, {{"new_axis_mask", 1}},
                      F32({1, 2, 2}, {1, 2, 4, 5})));
  c.push_back(Strided("new axis after an ellipsis", m, {0, 0}, {0, 0}, {1, 1},
                      {{"ellipsis_mask", 1}, {"new_axis_mask", 2}}, Iota<float>({2, 3, 1})));
  c.push_back(Strided("a new axis is not shrunk", v, {0, 1}, {1, 3}, {1, 1},
                      {{"new_axis_mask", 1}, {"shrink_axis_mask", 1}}, F32({1, 2}, {1, 2})));
  c.push_back(Strided("end as an offset", v, {1}, {2}, {1}, {{"offset", true}}, F32({2}, {1, 2})));
  c.push_back(
      Strided("end as an offset from the back", v, {-2}, {1}, {1}, {{"offset", true}}, F32({1}, {3})));
  c.push_back(
      Strided("two dims, one backwards", m, {0, -1}, {2, -4}, {1, -1}, {}, F32({2, 3}, {2, 1, 0, 5, 4, 3})));
  c.push_back({"i64 operands, bool values",
               "STRIDED_SLICE",
               {Bool({3}, {true, false, true}), I64({1}, {1}), I64({1}, {3}), I64({1}, {1})},
               {},
               {Bool({2}, {false, true})}});
  c.push_back(StridedError("a stride of 0", v, {0}, {1}, {0}, {}, "a stride of 0"));
  c.push_back(StridedError("index out of range", v, {5}, {6}, {1}, {{"shrink_axis_mask", 1}},
                           "index 5 is outside of dimension 5"));
  c.push_back(StridedError("index out of range, from the back", v, {-6}, {0}, {1}, {{"shrink_axis_mask", 1}},
                           "index -6 is outside"));
  c.push_back(StridedError("too many", v, {0, 0}, {1, 1}, {1, 1}, {}, "2 dimensions in a slice of rank 1"));
  c.push_back(StridedError("two ellipses", m, {0, 0}, {1, 1}, {1, 1}, {{"ellipsis_mask", 3}},
                           "more than one ellipsis"));
  c.push_back({.name = "lengths differ",
               .op = "STRIDED_SLICE",
               .operands = {v, I32({1}, {0}), I32({2}, {1, 1}), I32({1}, {1})},
               .error = "differ: 1 and 2"});
}

const Suite kSuite("slice", [](Cases& c) {
  AddSlices(c);
  AddStridedSlices(c);
  const Data m = Iota<float>({3, 3}), u = F32({1, 2}, {20, 21});
  c.push_back({"inside",
               "DYNAMIC_UPDATE_SLICE",
               {m, u, I32({2}, {1, 1})},
               {},
               {F32({3, 3}, {0, 1, 2, 3, 20, 21, 6, 7, 8})}});
  c.push_back({"moved in",
               "DYNAMIC_UPDATE_SLICE",
               {m, u, I64({2}, {9, 9})},
               {},
               {F32({3, 3}, {0, 1, 2, 3, 4, 5, 6, 20, 21})}});
  c.push_back({"moved in from before",
               "DYNAMIC_UPDATE_SLICE",
               {m, u, I32({2}, {-3, -1})},
               {},
               {F32({3, 3}, {20, 21, 2, 3, 4, 5, 6, 7, 8})}});
  c.push_back({"all of it",
               "DYNAMIC_UPDATE_SLICE",
               {Iota<int32_t>({2}), I32({2}, {7, 8}), I32({1}, {1})},
               {},
               {I32({2}, {7, 8})}});
  c.push_back({"nothing", "DYNAMIC_UPDATE_SLICE", {m, F32({0, 3}, {0}), I32({2}, {0, 0})}, {}, {m}});
  c.push_back({.name = "too large",
               .op = "DYNAMIC_UPDATE_SLICE",
               .operands = {m, F32({4, 1}, {0}), I32({2}, {0, 0})},
               .error = "larger than the operand"});
  c.push_back({.name = "another rank",
               .op = "DYNAMIC_UPDATE_SLICE",
               .operands = {m, F32({2}, {0}), I32({2}, {0, 0})},
               .error = "has rank 1"});
  c.push_back({.name = "another dtype",
               .op = "DYNAMIC_UPDATE_SLICE",
               .operands = {m, I32({1, 1}, {0}), I32({2}, {0, 0})},
               .error = "dtypes differ",
               .also_f64 = false});
});

}  // namespace
}  // namespace fusebox::conformance
