// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddDilate(Cases& c) {
  const char* op = "DILATE";
  const Data some = Iota<float>({2, 3}, 1), zero = F32({}, {0});
  c.push_back(
      {"both dims", op, {some, I32({2}, {2, 3}), zero}, {}, {F32({3, 7}, {1, 0, 0, 2, 0, 0, 3, 0, 0, 0, 0,
                                                                          0, 0, 0, 4, 0, 0, 5, 0, 0, 6})}});
  c.push_back({"rows, a value",
               op,
               {I32({2, 2}, {1, 2, 3, 4}), I32({2}, {2, 1}), I32({1}, {9})},
               {},
               {I32({3, 2}, {1, 2, 9, 9, 3, 4})}});
  c.push_back({"not at all", op, {some, I64({2}, {1, 1}), zero}, {}, {some}});
  c.push_back({"one element takes any step",
               op,
               {F32({1}, {5}), I64({1}, {std::numeric_limits<int64_t>::max()}), zero},
               {},
               {F32({1}, {5})}});
  c.push_back({"nothing", op, {F32({0, 2}, {0}), I32({2}, {3, 3}), zero}, {}, {F32({0, 4}, {0})}});
  c.push_back({"a scalar", op, {F32({}, {5}), I32({0}, {0}), zero}, {}, {F32({}, {5})}});
  c.push_back({"strings",
               op,
               {Text({2}, {"a", "b"}), I32({1}, {2}), Text({}, {"-"})},
               {},
               {Text({3}, {"a", "-", "b"})}});
  c.push_back({.name = "a step of 0",
               .op = op,
               .operands = {some, I32({2}, {1, 0}), zero},
               .error = "a dilation of 0"});
  c.push_back({.name = "too few steps",
               .op = op,
               .operands = {some, I32({1}, {1}), zero},
               .error = "has 1 values for rank 2"});
  c.push_back({.name = "too large",
               .op = op,
               .operands = {some, I64({2}, {1, std::numeric_limits<int64_t>::max()}), zero},
               .error = "overflows"});
  c.push_back({.name = "many values",
               .op = op,
               .operands = {some, I32({2}, {1, 1}), F32({2}, {0})},
               .error = "expected one value"});
}

const Suite kSuite("pad", [](Cases& c) {
  const Data m = F32({2, 2}, {1, 2, 3, 4}), v = F32({3}, {1, 2, 3});

  c.push_back({"around a matrix",
               "PAD",
               {m, I32({2, 2}, {1, 0, 0, 1})},
               {},
               {F32({3, 3}, {0, 0, 0, 1, 2, 0, 3, 4, 0})}});
  c.push_back({"around rows of an image",
               "PAD",
               {Iota<int32_t>({1, 2, 2, 2}, 1), I32({4, 2}, {0, 0, 0, 1, 1, 0, 0, 0})},
               {},
               {I32({1, 3, 3, 2}, {0, 0, 1, 2, 3, 4, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0})}});
  c.push_back({"nothing, i64", "PAD", {m, I64({2, 2}, {0})}, {}, {m}});
  c.push_back({"of nothing", "PAD", {F32({0}, {0}), I32({1, 2}, {1, 1})}, {}, {F32({2}, {0})}});
  c.push_back({"a scalar", "PAD", {F32({}, {3}), I32({0, 2}, {0})}, {}, {F32({}, {3})}});
  c.push_back({"quantized, with its zero",
               "PAD",
               {I8({1}, {5}).Quantized(0.5f, -3), I32({1, 2}, {1, 1})},
               {},
               {I8({3}, {-3, 5, -3}).Quantized(0.5f, -3)}});
  c.push_back({"i32 with a zero point left behind",
               "PAD",
               {I32({1}, {5}).Quantized(0.5f, -3), I32({1, 2}, {1, 1})},
               {},
               {I32({3}, {0, 5, 0}).Quantized(0.5f, -3)}});
  c.push_back({"images",
               "PAD",
               {Iota<int32_t>({1, 2, 1, 2}, 1), I32({4, 2}, {0, 0, 0, 1, 1, 0, 0, 0})},
               {},
               {I32({1, 3, 2, 2}, {0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0})}});
  c.push_back({.name = "negative",
               .op = "PAD",
               .operands = {m, I32({2, 2}, {1, 0, 0, -1})},
               .error = "a negative padding"});
  c.push_back({.name = "of another rank",
               .op = "PAD",
               .operands = {m, I32({1, 2}, {1, 0})},
               .error = "paddings of shape [1,2] for rank 2"});
  c.push_back({.name = "overflow",
               .op = "PAD",
               .operands = {m, I64({2, 2}, {INT64_MAX, INT64_MAX, 0, 0})},
               .error = "overflows"});

  c.push_back(
      {"with a value", "PADV2", {v, I32({1, 2}, {2, 1}), F32({}, {9})}, {}, {F32({6}, {9, 9, 1, 2, 3, 9})}});
  c.push_back({"with a list of one",
               "PADV2",
               {I64({1}, {1}), I32({1, 2}, {0, 1}), I64({1}, {-1})},
               {},
               {I64({2}, {1, -1})}});
  c.push_back({.name = "two values",
               .op = "PADV2",
               .operands = {v, I32({1, 2}, {0, 1}), F32({2}, {9})},
               .error = "expected one value, got shape [2]"});
  c.push_back({.name = "value of another type",
               .op = "PADV2",
               .operands = {v, I32({1, 2}, {0, 1}), I32({}, {9})},
               .error = "dtypes differ",
               .also_f64 = false});

  c.push_back({"without the edge",
               "MIRROR_PAD",
               {v, I32({1, 2}, {2, 1})},
               {{"mode", "REFLECT"}},
               {F32({6}, {3, 2, 1, 2, 3, 2})}});
  c.push_back({"with the edge",
               "MIRROR_PAD",
               {v, I32({1, 2}, {3, 2})},
               {{"mode", "SYMMETRIC"}},
               {F32({8}, {3, 2, 1, 1, 2, 3, 3, 2})}});
  c.push_back({"both dims",
               "MIRROR_PAD",
               {m, I32({2, 2}, {1, 0, 1, 1})},
               {{"mode", "SYMMETRIC"}},
               {F32({3, 4}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4})}});
  c.push_back(
      {"a scalar", "MIRROR_PAD", {F32({}, {3}), I32({0, 2}, {0})}, {{"mode", "REFLECT"}}, {F32({}, {3})}});
  c.push_back({.name = "too wide without the edge",
               .op = "MIRROR_PAD",
               .operands = {v, I32({1, 2}, {3, 0})},
               .attrs = {{"mode", "REFLECT"}},
               .results = {F32({6}, {0})},
               .error = "a mirror of 3 elements cannot fill 3"});
  c.push_back({.name = "too wide with the edge",
               .op = "MIRROR_PAD",
               .operands = {v, I32({1, 2}, {0, 4})},
               .attrs = {{"mode", "SYMMETRIC"}},
               .results = {F32({7}, {0})},
               .error = "a mirror of 3 elements cannot fill 4"});
});

const Suite kTiles("tile", [](Cases& c) {
  const Data m = F32({2, 2}, {1, 2, 3, 4});
  c.push_back({"both dims",
               "TILE",
               {m, I32({2}, {2, 2})},
               {},
               {F32({4, 4}, {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4})}});
  c.push_back({"a middle dim, i64",
               "TILE",
               {Iota<int32_t>({2, 1, 2}), I64({3}, {1, 2, 1})},
               {},
               {I32({2, 2, 2}, {0, 1, 0, 1, 2, 3, 2, 3})}});
  c.push_back({"last dims once",
               "TILE",
               {Iota<int32_t>({2, 1, 3}), I32({3}, {1, 2, 1})},
               {},
               {I32({2, 2, 3}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5})}});
  c.push_back({"one value", "TILE", {Bool({1}, {true}), I32({1}, {3})}, {}, {Bool({3}, {true})}});
  c.push_back({"no times", "TILE", {m, I32({2}, {0, 1})}, {}, {F32({0, 2}, {0})}});
  c.push_back({"a scalar", "TILE", {F32({}, {1}), I32({0}, {0})}, {}, {F32({}, {1})}});
  c.push_back(
      {.name = "negative", .op = "TILE", .operands = {m, I32({2}, {-1, 1})}, .error = "a multiple of -1"});
  c.push_back({.name = "of another rank",
               .op = "TILE",
               .operands = {m, I32({1}, {1})},
               .error = "has 1 values for rank 2"});
  c.push_back(
      {.name = "overflow", .op = "TILE", .operands = {m, I64({2}, {INT64_MAX, 1})}, .error = "overflows"});

  c.push_back(
      {"a row", "BROADCAST_TO", {F32({2}, {1, 2}), I32({2}, {2, 2})}, {}, {F32({2, 2}, {1, 2, 1, 2})}});
  c.push_back({"a column, i64",
               "BROADCAST_TO",
               {F32({2, 1}, {1, 2}), I64({2}, {2, 3})},
               {},
               {F32({2, 3}, {1, 1, 1, 2, 2, 2})}});
  c.push_back({"a scalar", "BROADCAST_TO", {U8({}, {7}), I32({2}, {1, 3})}, {}, {U8({1, 3}, {7})}});
  c.push_back({"to nothing", "BROADCAST_TO", {F32({1}, {1}), I32({1}, {0})}, {}, {F32({0}, {0})}});
  c.push_back({"inside and outside",
               "BROADCAST_TO",
               {I32({2, 1, 2}, {1, 2, 3, 4}), I32({4}, {2, 2, 2, 2})},
               {},
               {I32({2, 2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4})}});
  c.push_back({.name = "does not",
               .op = "BROADCAST_TO",
               .operands = {F32({2}, {1, 2}), I32({1}, {3})},
               .error = "do not broadcast"});
  c.push_back({.name = "to a smaller one",
               .op = "BROADCAST_TO",
               .operands = {m, I32({1}, {2})},
               .error = "[2,2] does not broadcast to [2]"});
  c.push_back({.name = "negative",
               .op = "BROADCAST_TO",
               .operands = {F32({1}, {1}), I32({1}, {-1})},
               .error = "a dimension of -1"});

  c.push_back(
      {"two shapes", "BROADCAST_ARGS", {I32({3}, {4, 1, 3}), I32({2}, {2, 1})}, {}, {I32({3}, {4, 2, 3})}});
  c.push_back(
      {"with a scalar's, i64", "BROADCAST_ARGS", {I64({0}, {0}), I64({1}, {5})}, {}, {I64({1}, {5})}});
  c.push_back({.name = "do not",
               .op = "BROADCAST_ARGS",
               .operands = {I32({1}, {4}), I32({1}, {2})},
               .results = {I32({1}, {0})},
               .error = "shapes [4] and [2] do not broadcast"});
  AddDilate(c);
});

}  // namespace
}  // namespace fusebox::conformance
