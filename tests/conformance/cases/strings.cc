// SPDX-License-Identifier: Apache-2.0
// Strings through the ops that move elements, and compared.
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Data kWords = Text({4}, {"zero", "", "two", "a longer one"});
const Data kTable = Text({2, 2}, {"a", "bb", "ccc", ""});

// The last string ends behind the data.
Data Damaged() {
  Data d = Text({2}, {"ab", "cd"});
  d.bytes[12] = 99;
  return d;
}

Data Uncounted() {
  Data d = Text({2}, {"ab", "cd"});
  d.bytes[0] = 3;
  return d;
}

void AddByIndex(Cases& c) {
  c.push_back({"strings",
               "GATHER",
               {kWords, I32({3}, {3, 1, 3})},
               {},
               {Text({3}, {"a longer one", "", "a longer one"})}});
  c.push_back({"one string", "GATHER", {kWords, I64({}, {2})}, {}, {Text({}, {"two"})}});
  c.push_back(
      {"columns of strings", "GATHER", {kTable, I32({1}, {1})}, {{"axis", 1}}, {Text({2, 1}, {"bb", ""})}});
  c.push_back({"no strings", "GATHER", {kWords, I32({0}, {0})}, {}, {Text({0}, {})}});
  c.push_back({.name = "string out of range",
               .op = "GATHER",
               .operands = {kWords, I32({1}, {4})},
               .results = {Text({1}, {""})},
               .error = "index 4 is outside of dimension 4"});
  c.push_back({.name = "damaged strings",
               .op = "GATHER",
               .operands = {Damaged(), I32({1}, {0})},
               .results = {Text({1}, {""})},
               .error = "string 1 is damaged"});
  c.back().operands[1] = I32({1}, {1});
  c.push_back({.name = "strings of another number",
               .op = "GATHER",
               .operands = {Uncounted(), I32({1}, {0})},
               .results = {Text({1}, {""})},
               .error = "the strings are damaged"});
  c.push_back({"strings", "GATHER_ND", {kTable, I32({2, 2}, {1, 0, 0, 1})}, {}, {Text({2}, {"ccc", "bb"})}});
  c.push_back({"rows of strings", "GATHER_ND", {kTable, I32({1, 1}, {1})}, {}, {Text({1, 2}, {"ccc", ""})}});
}

void AddShapes(Cases& c) {
  c.push_back({"strings",
               "RESHAPE",
               {kWords, I32({2}, {2, -1})},
               {},
               {Text({2, 2}, {"zero", "", "two", "a longer one"})}});
  c.push_back(
      {"a string to a scalar", "RESHAPE", {Text({1}, {"x"})}, {{"new_shape", Dims{}}}, {Text({}, {"x"})}});
  c.push_back({"no strings", "RESHAPE", {Text({0, 2}, {}), I32({1}, {-1})}, {}, {Text({0}, {})}});
  c.back().operands[1] = I32({1}, {0});
  c.push_back({.name = "strings of another number",
               .op = "RESHAPE",
               .operands = {kWords, I32({1}, {3})},
               .results = {Text({3}, {"", "", ""})},
               .error = "cannot make [3] of 4 elements"});
  c.push_back({"strings",
               "SQUEEZE",
               {Text({1, 2, 1}, {"a", "b"})},
               {{"squeeze_dims", Dims{0}}},
               {Text({2, 1}, {"a", "b"})}});
  c.push_back({"strings",
               "EXPAND_DIMS",
               {kWords, I32({}, {0})},
               {},
               {Text({1, 4}, {"zero", "", "two", "a longer one"})}});
  c.push_back(
      {"strings", "TRANSPOSE", {kTable, I32({2}, {1, 0})}, {}, {Text({2, 2}, {"a", "ccc", "bb", ""})}});
  c.push_back({"strings", "REVERSE_V2", {kTable, I32({1}, {1})}, {}, {Text({2, 2}, {"bb", "a", "", "ccc"})}});
  c.push_back(
      {"strings", "TILE", {Text({2}, {"a", "bb"}), I32({1}, {2})}, {}, {Text({4}, {"a", "bb", "a", "bb"})}});
  c.push_back({.name = "more strings than fit",
               .op = "TILE",
               .operands = {Text({2}, {"a", "bb"}), I32({1}, {2000000000})},
               .results = {Text({0}, {})},
               .error = "strings too large for a string tensor"});
  c.push_back({"strings",
               "BROADCAST_TO",
               {Text({2, 1}, {"a", "bb"}), I32({2}, {2, 2})},
               {},
               {Text({2, 2}, {"a", "a", "bb", "bb"})}});
  c.push_back({"strings", "FILL", {I32({2}, {1, 3}), Text({}, {"x"})}, {}, {Text({1, 3}, {"x", "x", "x"})}});
}

void AddPieces(Cases& c) {
  c.push_back(
      {"strings", "SLICE", {kTable, I32({2}, {0, 1}), I32({2}, {2, 1})}, {}, {Text({2, 1}, {"bb", ""})}});
  c.push_back({"strings",
               "STRIDED_SLICE",
               {kWords, I32({1}, {3}), I32({1}, {0}), I32({1}, {-2})},
               {},
               {Text({2}, {"a longer one", ""})}});
  c.push_back({"one string",
               "STRIDED_SLICE",
               {kWords, I32({1}, {2}), I32({1}, {3}), I32({1}, {1})},
               {{"shrink_axis_mask", 1}},
               {Text({}, {"two"})}});
  c.push_back({"strings",
               "DYNAMIC_UPDATE_SLICE",
               {kWords, Text({2}, {"x", "yy"}), I32({1}, {1})},
               {},
               {Text({4}, {"zero", "x", "yy", "a longer one"})}});
  c.push_back({"strings",
               "CONCATENATION",
               {kTable, Text({2, 1}, {"x", "y"})},
               {{"axis", 1}},
               {Text({2, 3}, {"a", "bb", "x", "ccc", "", "y"})}});
  c.push_back({.name = "strings and numbers",
               .op = "CONCATENATION",
               .operands = {kWords, U32({4}, {0})},
               .results = {Text({0}, {})},
               .error = "dtypes differ: string and u32"});
  c.push_back({"strings",
               "PACK",
               {Text({}, {"a"}), Text({}, {""})},
               {{"axis", 0}, {"values_count", 2}},
               {Text({2}, {"a", ""})}});
  c.push_back({"strings",
               "UNPACK",
               {kTable},
               {{"axis", 1}, {"num", 2}},
               {Text({2}, {"a", "ccc"}), Text({2}, {"bb", ""})}});
  c.push_back({"strings",
               "SPLIT",
               {I32({}, {0}), kTable},
               {{"num_splits", 2}},
               {Text({1, 2}, {"a", "bb"}), Text({1, 2}, {"ccc", ""})}});
  c.push_back({"strings",
               "SPLIT_V",
               {kWords, I32({2}, {1, -1}), I32({}, {0})},
               {{"num_splits", 2}},
               {Text({1}, {"zero"}), Text({3}, {"", "two", "a longer one"})}});
}

const Suite kSuite("strings", [](Cases& c) {
  AddByIndex(c);
  AddShapes(c);
  AddPieces(c);
  for (const char* op : {"SELECT", "SELECT_V2"})
    c.push_back({"strings",
                 op,
                 {Bool({4}, {true, false, false, true}), kWords, Text({4}, {"a", "b", "c", "d"})},
                 {},
                 {Text({4}, {"zero", "b", "c", "a longer one"})}});
  c.push_back({"strings",
               "EQUAL",
               {kTable, Text({2}, {"ccc", "bb"})},
               {},
               {Bool({2, 2}, {false, true, true, false})}});
  c.push_back(
      {"strings", "NOT_EQUAL", {kTable, Text({}, {""})}, {}, {Bool({2, 2}, {true, true, true, false})}});
  c.push_back({"no strings", "EQUAL", {Text({0}, {}), Text({1}, {"a"})}, {}, {Bool({0}, {false})}});
  c.push_back({.name = "strings and numbers",
               .op = "EQUAL",
               .operands = {kWords, I32({4}, {0})},
               .results = {Bool({4}, {false})},
               .error = "dtypes differ: string and i32"});
  c.push_back({.name = "damaged strings",
               .op = "EQUAL",
               .operands = {Damaged(), Damaged()},
               .results = {Bool({2}, {false})},
               .error = "is damaged"});
  c.push_back({.name = "strings in order",
               .op = "LESS",
               .operands = {kWords, kWords},
               .refused = "dtype string is unsupported"});
});

}  // namespace
}  // namespace fusebox::conformance
