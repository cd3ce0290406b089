// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddSparseToDense(Cases& c) {
  const char* op = "SPARSE_TO_DENSE";
  const Data zero = F32({}, {0});
  c.push_back({"places in a list",
               op,
               {I32({2}, {1, 3}), I32({1}, {5}), F32({2}, {7, 8}), zero},
               {},
               {F32({5}, {0, 7, 0, 8, 0})}});
  c.push_back({"places in a matrix, one value",
               op,
               {I32({3, 2}, {0, 0, 1, 2, 1, 1}), I32({2}, {2, 3}), F32({}, {5}), F32({}, {-1})},
               {},
               {F32({2, 3}, {5, -1, -1, -1, 5, 5})}});
  c.push_back({"a great many places without indices",
               op,
               {I32({int64_t{1} << 27, 0}, {}), I32({0}, {}), F32({}, {5}), F32({}, {-1})},
               {},
               {F32({}, {5})}});
  c.push_back({"one place",
               op,
               {I32({}, {2}), I32({1}, {4}), I32({}, {9}), I32({}, {1})},
               {},
               {I32({4}, {1, 1, 9, 1})}});
  c.push_back({"indices in i64",
               op,
               {I64({1, 3}, {0, 1, 1}), I64({3}, {1, 2, 2}), I64({1}, {9}), I64({}, {0})},
               {},
               {I64({1, 2, 2}, {0, 0, 0, 9})}});
  c.push_back({"bytes, the last of one place stays",
               op,
               {I32({2}, {1, 1}), I32({1}, {2}), U8({2}, {3, 4}), U8({}, {0})},
               {},
               {U8({2}, {0, 4})}});
  c.push_back(
      {"no places", op, {I32({0}, {0}), I32({1}, {2}), F32({0}, {0}), F32({}, {3})}, {}, {F32({2}, {3, 3})}});
  c.push_back({"strings",
               op,
               {I32({1}, {1}), I32({1}, {2}), Text({1}, {"a"}), Text({}, {"none"})},
               {},
               {Text({2}, {"none", "a"})}});
  c.push_back({.name = "index out of range",
               .op = op,
               .operands = {I32({1, 2}, {0, 3}), I32({2}, {2, 3}), F32({1}, {1}), zero},
               .results = {F32({2, 3}, {0})},
               .error = "index 3 is outside of dimension 3"});
  c.push_back({.name = "negative index",
               .op = op,
               .operands = {I32({}, {-1}), I32({1}, {2}), F32({1}, {1}), zero},
               .results = {F32({2}, {0})},
               .error = "index -1 is outside of dimension 2"});
  c.push_back({.name = "indices of another rank",
               .op = op,
               .operands = {I32({2}, {0, 1}), I32({2}, {2, 3}), F32({}, {1}), zero},
               .results = {F32({2, 3}, {0})},
               .error = "indices of 1 for rank 2"});
  c.push_back({.name = "values of another number",
               .op = op,
               .operands = {I32({2}, {0, 1}), I32({1}, {2}), F32({3}, {1}), zero},
               .results = {F32({2}, {0})},
               .error = "differ: 3 and 2"});
  c.push_back({.name = "a negative shape",
               .op = op,
               .operands = {I32({}, {0}), I32({1}, {-2}), F32({}, {1}), zero},
               .error = "a dimension of -2"});
  c.push_back(
      {.name = "a shape that overflows",
       .op = op,
       .operands = {I64({1, 2}, {0}), I64({2}, {int64_t{1} << 40, int64_t{1} << 40}), F32({}, {1}), zero},
       .error = "overflows"});
  c.push_back({.name = "values of two types",
               .op = op,
               .operands = {I32({}, {0}), I32({1}, {2}), F32({}, {1}), I32({}, {0})},
               .error = "dtypes differ"});
}

void AddEmbeddings(Cases& c) {
  const char* op = "EMBEDDING_LOOKUP_SPARSE";
  const Data table = F32({3, 2}, {1, 2, 10, 20, 100, 200}), where = I32({3, 2}, {0, 0, 0, 1, 2, 0});
  const std::vector<Data> operands = {I32({3}, {0, 2, 1}), where, I32({2}, {3, 2}), F32({3}, {3, 4, 2}),
                                      table};
  c.push_back({"sums", op, operands, {{"combiner", "SUM"}}, {F32({3, 2}, {403, 806, 0, 0, 20, 40})}});
  c.push_back({.name = "means",
               .op = op,
               .operands = operands,
               .attrs = {{"combiner", "MEAN"}},
               .results = {F32({3, 2}, {403.0f / 7, 806.0f / 7, 0, 0, 10, 20})},
               .rtol = 1e-6});
  c.push_back({.name = "over a root",
               .op = op,
               .operands = operands,
               .attrs = {{"combiner", "SQRTN"}},
               .results = {F32({3, 2}, {80.6f, 161.2f, 0, 0, 10, 20})},
               .rtol = 1e-6});
  c.push_back(
      {"one bucket",
       op,
       {I32({2}, {1, 1}), I32({2, 1}, {0, 1}), I32({1}, {2}), F32({2}, {1, 2}), F32({2, 1, 2}, {0, 0, 5, 6})},
       {{"combiner", "SUM"}},
       {F32({1, 2}, {15, 18})}});
  c.push_back({"nothing",
               op,
               {I32({0}, {0}), I32({0, 2}, {0}), I32({2}, {1, 1}), F32({0}, {0}), table},
               {{"combiner", "MEAN"}},
               {F32({1, 2}, {0, 0})}});
  const auto bad = [&](const char* name, size_t operand, Data with, const char* error) {
    c.push_back(
        {.name = name, .op = op, .operands = operands, .results = {F32({3, 2}, {0})}, .error = error});
    c.back().operands[operand] = std::move(with);
  };
  bad("a row that is not there", 0, I32({3}, {0, 3, 1}), "index 3 is outside of dimension 3");
  bad("a negative row", 0, I32({3}, {0, -1, 1}), "index -1 is outside of dimension 3");
  bad("a place that is not there", 1, I32({3, 2}, {0, 0, 0, 1, 3, 0}), "index 3 is outside of dimension 3");
  bad("places out of order", 1, I32({3, 2}, {1, 0, 0, 1, 2, 0}), "not in ascending order");
  bad("fewer weights", 3, F32({2}, {1}), "differ: 2 and 3");
  bad("fewer rows", 0, I32({2}, {0}), "differ: 2 and 3");
  bad("places of another rank", 1, I32({3, 1}, {0}), "indices of 1 for rank 2");
  bad("a negative shape", 2, I32({2}, {-3, 2}), "a dimension of -3");
}

void AddTables(Cases& c) {
  const char* op = "HASHTABLE_LOOKUP";
  const Data wanted = I32({4}, {11, -5, 20, 11}), keys = I32({3}, {-5, 11, 30});
  c.push_back({"rows",
               op,
               {wanted, keys, F32({3, 2}, {1, 2, 3, 4, 5, 6})},
               {},
               {F32({4, 2}, {3, 4, 1, 2, 0, 0, 3, 4}), U8({4}, {1, 1, 0, 1})}});
  c.push_back({"numbers",
               op,
               {wanted, keys, I32({3}, {1, 2, 3})},
               {},
               {I32({4}, {2, 1, 0, 2}), U8({4}, {1, 1, 0, 1})}});
  c.push_back({"strings",
               op,
               {wanted, keys, Text({3}, {"minus five", "eleven", ""})},
               {},
               {Text({4}, {"eleven", "minus five", "", "eleven"}), U8({4}, {1, 1, 0, 1})}});
  c.push_back({"an empty table",
               op,
               {I32({1}, {1}), I32({0}, {0}), F32({0, 2}, {0})},
               {},
               {F32({1, 2}, {0}), U8({1}, {0})}});
  c.push_back(
      {"nothing wanted", op, {I32({0}, {0}), keys, F32({3}, {0})}, {}, {F32({0}, {0}), U8({0}, {0})}});
  c.push_back({.name = "more keys than rows",
               .op = op,
               .operands = {wanted, keys, F32({2, 2}, {0})},
               .results = {F32({4, 2}, {0}), U8({4}, {0})},
               .error = "differ: 3 and 2"});
  c.push_back({.name = "keys in i64",
               .op = op,
               .operands = {I64({1}, {0}), I64({1}, {0}), F32({1}, {0})},
               .refused = "dtype i64 is unsupported"});
}

const Suite kSuite("sparse", [](Cases& c) {
  AddSparseToDense(c);
  AddEmbeddings(c);
  AddTables(c);
});

}  // namespace
}  // namespace fusebox::conformance
