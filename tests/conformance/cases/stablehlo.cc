// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

void AddElementwise(Cases& c) {
  const Data x = F32({2, 2}, {1, -2, 3, 0.5f}), y = F32({2, 2}, {4, 5, -6, 2});
  c.push_back({"floats", "STABLEHLO_ADD", {x, y}, {}, {F32({2, 2}, {5, 3, -3, 2.5f})}});
  c.push_back({"floats", "STABLEHLO_MULTIPLY", {x, y}, {}, {F32({2, 2}, {4, -10, -18, 1})}});
  c.push_back({"floats", "STABLEHLO_MAXIMUM", {x, y}, {}, {F32({2, 2}, {4, 5, 3, 2})}});
  c.push_back({"floats", "STABLEHLO_MINIMUM", {x, y}, {}, {F32({2, 2}, {1, -2, -6, 0.5f})}});
  const Data a = F32({4}, {kNaN, 1, 2, 1}), b = F32({4}, {1, kNaN, 1, 2});
  c.push_back({"NaN wins", "STABLEHLO_MAXIMUM", {a, b}, {}, {F32({4}, {kNaN, kNaN, 2, 2})}});
  c.push_back({"NaN wins", "STABLEHLO_MINIMUM", {a, b}, {}, {F32({4}, {kNaN, kNaN, 1, 1})}});
  c.push_back(
      {"wraps", "STABLEHLO_ADD", {I8({2}, {127, -128}), I8({2}, {1, -1})}, {}, {I8({2}, {-128, 127})}});
  c.push_back(
      {"wraps", "STABLEHLO_MULTIPLY", {I64({2}, {kMost, 3}), I64({2}, {2, -4})}, {}, {I64({2}, {-2, -12})}});
  c.push_back(
      {"16 bits wrap", "STABLEHLO_MULTIPLY", {I16({1}, {-1}), I16({1}, {-32768})}, {}, {I16({1}, {-32768})}});
  c.push_back(
      {"unsigned", "STABLEHLO_MAXIMUM", {U8({2}, {200, 1}), U8({2}, {100, 2})}, {}, {U8({2}, {200, 2})}});
  c.push_back({"bits", "STABLEHLO_AND", {I32({2}, {12, -1}), I32({2}, {10, 7})}, {}, {I32({2}, {8, 7})}});
  c.push_back({"truths",
               "STABLEHLO_AND",
               {Bool({2}, {true, true}), Bool({2}, {true, false})},
               {},
               {Bool({2}, {true, false})}});
  c.push_back({"some, none, too many",
               "STABLEHLO_SHIFT_LEFT",
               {I8({5}, {3, -1, 3, 3, 1}), I8({5}, {2, 7, 8, -1, 0})},
               {},
               {I8({5}, {12, -128, 0, 0, 1})}});
  c.push_back({"64 bits",
               "STABLEHLO_SHIFT_LEFT",
               {I64({2}, {1, -1}), I64({2}, {63, 64})},
               {},
               {I64({2}, {kLeast, 0})}});
  c.push_back({"scalars", "STABLEHLO_ADD", {I32({}, {1}), I32({}, {2})}, {}, {I32({}, {3})}});
  c.push_back({"nothing", "STABLEHLO_ADD", {F32({0, 2}, {0}), F32({0, 2}, {0})}, {}, {F32({0, 2}, {0})}});
  c.push_back({.name = "does not broadcast",
               .op = "STABLEHLO_ADD",
               .operands = {x, F32({1, 2}, {0})},
               .results = {x},
               .error = "sizes differ: 2 and 1"});
  c.push_back({.name = "of two ranks",
               .op = "STABLEHLO_ADD",
               .operands = {x, F32({}, {0})},
               .results = {x},
               .error = "ranks differ: 2 and 0"});
  c.push_back({.name = "of two types",
               .op = "STABLEHLO_ADD",
               .operands = {x, I32({2, 2}, {0})},
               .results = {x},
               .error = "dtypes differ"});
  c.push_back({.name = "of floats", .op = "STABLEHLO_AND", .operands = {x, y}, .refused = " is unsupported"});
}

void AddPad(Cases& c) {
  const auto pad = [](Dims low, Dims high, Dims between) {
    return std::vector<Attr>{{"edge_padding_low", std::move(low)},
                             {"edge_padding_high", std::move(high)},
                             {"interior_padding", std::move(between)}};
  };
  const char* op = "STABLEHLO_PAD";
  const Data some = Iota<float>({2, 3}, 1), nine = F32({}, {9});
  c.push_back({"around and between",
               op,
               {some, nine},
               pad({0, 1}, {1, 0}, {0, 1}),
               {F32({3, 6}, {9, 1, 9, 2, 9, 3, 9, 4, 9, 5, 9, 6, 9, 9, 9, 9, 9, 9})}});
  c.push_back({"cuts off", op, {Iota<int32_t>({5}), I32({}, {9})}, pad({-2}, {-1}, {0}), {I32({2}, {2, 3})}});
  c.push_back({"cuts off what is between",
               op,
               {Iota<int32_t>({3}), I32({}, {9})},
               pad({-1}, {-1}, {1}),
               {I32({3}, {9, 1, 9})}});
  c.push_back({"cuts off one side, pads the other",
               op,
               {Iota<int32_t>({3}), I32({}, {9})},
               pad({-2}, {3}, {0}),
               {I32({4}, {2, 9, 9, 9})}});
  c.push_back({"cuts off all of it and more",
               op,
               {Iota<int32_t>({2}), I32({}, {9})},
               pad({-5}, {5}, {0}),
               {I32({2}, {9})}});
  c.push_back({"before what is cut off",
               op,
               {Iota<int32_t>({2}), I32({}, {9})},
               pad({3}, {-4}, {0}),
               {I32({1}, {9})}});
  c.push_back({"nothing", op, {F32({0}, {0}), nine}, pad({1}, {1}, {5}), {F32({2}, {9})}});
  c.push_back({"to nothing", op, {F32({2}, {0}), nine}, pad({-1}, {-1}, {0}), {F32({0}, {0})}});
  c.push_back({"a scalar", op, {F32({}, {3}), nine}, pad({}, {}, {}), {F32({}, {3})}});
  c.push_back({"the ends of 64 bits",
               op,
               {Iota<int32_t>({3}), I32({}, {9})},
               pad({kLeast}, {kMost}, {0}),
               {I32({2}, {9})}});
  c.push_back({.name = "less than nothing",
               .op = op,
               .operands = {some, nine},
               .attrs = pad({-3, 0}, {0, 0}, {0, 0}),
               .error = "dimension 0 has an invalid padding"});
  c.push_back({.name = "less than nothing between",
               .op = op,
               .operands = {some, nine},
               .attrs = pad({0, 0}, {0, 0}, {0, -1}),
               .error = "dimension 1 has an invalid padding"});
  c.push_back({.name = "too much",
               .op = op,
               .operands = {some, nine},
               .attrs = pad({kMost, 0}, {kMost, 0}, {0, 0}),
               .error = "dimension 0 has an invalid padding"});
  c.push_back({.name = "of another rank",
               .op = op,
               .operands = {some, nine},
               .attrs = pad({0}, {0, 0}, {0, 0}),
               .error = "has 1 values for rank 2"});
  c.push_back({.name = "many values",
               .op = op,
               .operands = {some, F32({2}, {0})},
               .attrs = pad({0, 0}, {0, 0}, {0, 0}),
               .error = "expected one value"});
}

void AddGather(Cases& c) {
  const auto dims = [](Dims offset, Dims collapsed, Dims map, int vector_dim, Dims sizes) {
    return std::vector<Attr>{{"offset_dims", std::move(offset)},
                             {"collapsed_slice_dims", std::move(collapsed)},
                             {"start_index_map", std::move(map)},
                             {"index_vector_dim", vector_dim},
                             {"slice_sizes", std::move(sizes)}};
  };
  const char* op = "STABLEHLO_GATHER";
  const Data m = Iota<float>({3, 4}), three = Iota<int32_t>({2, 3, 2});
  c.push_back({"rows",
               op,
               {m, I32({2}, {2, 0})},
               dims({1}, {0}, {0}, 1, {1, 4}),
               {F32({2, 4}, {8, 9, 10, 11, 0, 1, 2, 3})}});
  c.push_back({"columns, the slices first",
               op,
               {m, I64({2, 1}, {3, 1})},
               dims({0}, {1}, {1}, 1, {3, 1}),
               {F32({3, 2}, {3, 1, 7, 5, 11, 9})}});
  c.push_back({.name = "indices of too many dimensions",
               .op = op,
               .operands = {m, I32(Dims(40, 1), {0})},
               .attrs = dims({40}, {0}, {0}, 40, {1, 4}),
               .results = {m},
               .error = "more than 8 dimensions"});
  c.push_back({"elements",
               op,
               {m, I32({2, 2}, {1, 2, 0, 3})},
               dims({}, {0, 1}, {0, 1}, 1, {1, 1}),
               {F32({2}, {6, 3})}});
  c.push_back({"elements, by index last dimension first",
               op,
               {m, I32({2, 2}, {1, 2, 2, 0})},
               dims({}, {0, 1}, {1, 0}, 0, {1, 1}),
               {F32({2}, {9, 2})}});
  c.push_back({"boxes, moved in where they stick out",
               op,
               {m, I32({2, 2}, {2, 3, -5, 1})},
               dims({1, 2}, {}, {0, 1}, 1, {2, 2}),
               {F32({2, 2, 2}, {6, 7, 10, 11, 1, 2, 5, 6})}});
  c.push_back({"one slice",
               op,
               {three, I32({1}, {1})},
               dims({0, 1}, {1}, {1}, 0, {2, 1, 2}),
               {I32({2, 2}, {2, 3, 8, 9})}});
  c.push_back({"nowhere", op, {m, I32({0, 1}, {0})}, dims({1}, {0}, {0}, 1, {1, 4}), {F32({0, 4}, {0})}});
  c.push_back({"nothing of it",
               op,
               {m, I32({2, 1}, {1, 9})},
               dims({1, 2}, {}, {0}, 1, {0, 4}),
               {F32({2, 0, 4}, {0})}});
  const auto bad = [&](const char* name, std::vector<Attr> attrs, const char* error) {
    c.push_back({.name = name,
                 .op = op,
                 .operands = {m, I32({2, 1}, {0})},
                 .attrs = std::move(attrs),
                 .results = {F32({2, 4}, {0})},
                 .error = error});
  };
  bad("a slice larger than the tensor", dims({1}, {0}, {0}, 1, {1, 5}),
      "a size of 5 for dimension 1 of [3,4]");
  bad("a negative slice", dims({1}, {0}, {0}, 1, {1, -1}), "a size of -1");
  bad("a dimension of many left out", dims({1}, {0}, {0}, 1, {2, 4}), "a size of 2 for dimension 0");
  bad("too few sizes", dims({1}, {0}, {0}, 1, {1}), "has 1 values for rank 2");
  bad("too many offsets", dims({1, 2}, {0}, {0}, 1, {1, 4}), "has 2 values for slices of rank 1");
  bad("an offset that is not there", dims({2}, {0}, {0}, 1, {1, 4}), "dimension 2 is outside of rank 2");
  bad("a dimension twice", dims({}, {0, 0}, {0}, 1, {1, 4}), "dimension 0 is duplicated");
  bad("an index of no dimension", dims({1}, {0}, {7}, 1, {1, 4}), "dimension 7 is outside of rank 2");
  bad("indices of another length", dims({1}, {0}, {0, 1}, 1, {1, 4}), "indices of 1 for 2 dimensions");
  bad("an index vector that is not there", dims({1}, {0}, {0}, 3, {1, 4}), "is 3 for rank 2");
}

void AddReduceWindow(Cases& c) {
  const char* op = "REDUCE_WINDOW";
  const auto list = [](Dims values) { return I64({static_cast<int64_t>(values.size())}, values); };
  const Data m = Iota<float>({3, 4});
  const auto add = [&](const char* name, Data x, Data start, Dims window, Dims step, Dims inner,
                       const char* function, Data y) {
    c.push_back({name,
                 op,
                 {std::move(x), std::move(start), list(window), list(step), list(inner)},
                 {{"reduce_function", function}},
                 {std::move(y)}});
  };
  add("sums", m, F32({}, {0}), {2, 2}, {1, 1}, {1, 1}, "ADD", F32({2, 3}, {10, 14, 18, 26, 30, 34}));
  add("steps, from a value", m, F32({1}, {100}), {1, 2}, {2, 2}, {1, 1}, "ADD",
      F32({2, 2}, {101, 105, 117, 121}));
  add("a wide window", m, F32({}, {1}), {2, 2}, {1, 1}, {2, 3}, "MUL", F32({1, 1}, {0}));
  add("least", m, F32({}, {4}), {1, 4}, {1, 1}, {1, 1}, "MINIMUM", F32({3, 1}, {0, 4, 4}));
  add("most", Iota<int32_t>({5}), I32({}, {-9}), {3}, {2}, {1}, "MAXIMUM", I32({2}, {2, 4}));
  add("bytes wrap", I8({2}, {100, 100}), I8({}, {0}), {2}, {1}, {1}, "ADD", I8({1}, {-56}));
  add("16 bits wrap", I16({2}, {-1, -1}), I16({}, {7}), {2}, {1}, {1}, "MUL", I16({1}, {7}));
  add("all", Bool({3}, {true, true, false}), Bool({}, {true}), {2}, {1}, {1}, "ALL",
      Bool({2}, {true, false}));
  add("any", Bool({3}, {false, false, true}), Bool({}, {false}), {2}, {1}, {1}, "ANY",
      Bool({2}, {false, true}));
  add("a window that does not fit", m, F32({}, {0}), {4, 1}, {1, 1}, {1, 1}, "ADD", F32({0, 4}, {0}));
  add("any step for one place", F32({1}, {5}), F32({}, {0}), {1}, {kMost}, {kMost}, "ADD", F32({1}, {5}));
  add("a scalar", F32({}, {5}), F32({}, {2}), {}, {}, {}, "ADD", F32({}, {7}));
  const Data odd = F32({6}, {kNaN, 1, 2, kNaN, 3, 4});
  add("NaN is the most", odd, F32({}, {-9}), {2}, {2}, {1}, "MAXIMUM", F32({3}, {kNaN, kNaN, 4}));
  add("NaN is the least", odd, F32({}, {9}), {2}, {2}, {1}, "MINIMUM", F32({3}, {kNaN, kNaN, 3}));
  const auto bad = [&](const char* name, Dims window, Dims step, Dims inner, const char* error) {
    c.push_back({.name = name,
                 .op = op,
                 .operands = {m, F32({}, {0}), list(window), list(step), list(inner)},
                 .attrs = {{"reduce_function", "ADD"}},
                 .error = error});
  };
  bad("no window", {0, 1}, {1, 1}, {1, 1}, "a value of 0");
  bad("no step", {1, 1}, {1, -1}, {1, 1}, "a value of -1");
  bad("no step inside", {1, 1}, {1, 1}, {0, 1}, "a value of 0");
  bad("of another rank", {1}, {1, 1}, {1, 1}, "has 1 values for rank 2");
  bad("too wide", {3, 1}, {1, 1}, {kMost, 1}, "overflows");
  c.push_back({.name = "of no function",
               .op = op,
               .operands = {m, F32({}, {0}), list({1, 1}), list({1, 1}), list({1, 1})},
               .attrs = {{"reduce_function", "UNSUPPORTED"}},
               .refused = "UNSUPPORTED is unsupported"});
  c.push_back({.name = "all numbers",
               .op = op,
               .operands = {m, F32({}, {0}), list({1, 1}), list({1, 1}), list({1, 1})},
               .attrs = {{"reduce_function", "ALL"}},
               .refused = " is unsupported"});
}

const Suite kSuite("stablehlo", [](Cases& c) {
  AddElementwise(c);
  AddPad(c);
  AddGather(c);
  AddReduceWindow(c);
});

}  // namespace
}  // namespace fusebox::conformance
