// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddGather(Cases& c) {
  const Data m = Iota<float>({3, 2});
  c.push_back({"rows", "GATHER", {m, I32({2}, {2, 0})}, {{"axis", 0}}, {F32({2, 2}, {4, 5, 0, 1})}});
  c.push_back(
      {"columns, from the back", "GATHER", {m, I64({1}, {1})}, {{"axis", -1}}, {F32({3, 1}, {1, 3, 5})}});
  c.push_back({"indices with a scale left behind",
               "GATHER",
               {m, I32({2}, {2, 0}).Quantized(0.5f, 1)},
               {{"axis", 0}},
               {F32({2, 2}, {4, 5, 0, 1})}});
  c.push_back({"one, by a scalar", "GATHER", {m, I32({}, {1})}, {}, {F32({2}, {2, 3})}});
  c.push_back({"a table of indices",
               "GATHER",
               {Iota<int64_t>({3}), I32({2, 2}, {0, 1, 2, 1})},
               {},
               {I64({2, 2}, {0, 1, 2, 1})}});
  c.push_back({"i16 indices, bool values",
               "GATHER",
               {Bool({2}, {true, false}), I16({3}, {1, 0, 1})},
               {},
               {Bool({3}, {false, true, false})}});
  c.push_back({"no indices", "GATHER", {m, I32({0}, {0})}, {}, {F32({0, 2}, {0})}});
  const Data bools = Bool({2}, {true, false});
  c.push_back(
      {"bools, of rows without elements", "GATHER", {F32({3, 0}, {0}), bools}, {}, {F32({2, 0}, {0})}});
  c.push_back({.name = "bools",
               .op = "GATHER",
               .operands = {m, bools},
               .results = {F32({2, 2}, {0})},
               .error = "bools are no indices"});
  c.push_back({"in batches",
               "GATHER",
               {Iota<float>({2, 3}), I32({2, 2}, {2, 0, 1, 1})},
               {{"axis", 1}, {"batch_dims", 1}},
               {F32({2, 2}, {2, 0, 4, 4})}});
  c.push_back({"in batches, an axis further in",
               "GATHER",
               {Iota<float>({2, 2, 3}), I32({2, 1}, {2, 0})},
               {{"axis", 2}, {"batch_dims", -1}},
               {F32({2, 2, 1}, {2, 5, 6, 9})}});
  c.push_back({.name = "index too large",
               .op = "GATHER",
               .operands = {m, I32({1}, {3})},
               .results = {F32({1, 2}, {0})},
               .error = "index 3 is outside of dimension 3"});
  c.push_back({.name = "negative index",
               .op = "GATHER",
               .operands = {m, I32({1}, {-1})},
               .results = {F32({1, 2}, {0})},
               .error = "index -1 is outside"});
  c.push_back({.name = "of nothing",
               .op = "GATHER",
               .operands = {F32({0, 2}, {0}), I32({1}, {0})},
               .results = {F32({1, 2}, {0})},
               .error = "index 0 is outside of dimension 0"});
  c.push_back({.name = "batches after the axis",
               .op = "GATHER",
               .operands = {m, I32({3}, {0})},
               .attrs = {{"batch_dims", 1}},
               .error = "batch_dims"});
  c.push_back({.name = "batches differ",
               .op = "GATHER",
               .operands = {m, I32({2, 1}, {0})},
               .attrs = {{"axis", 1}, {"batch_dims", 1}},
               .error = "differ: 3 and 2"});

  c.push_back({"elements", "GATHER_ND", {m, I32({2, 2}, {2, 1, 0, 0})}, {}, {F32({2}, {5, 0})}});
  c.push_back({"rows", "GATHER_ND", {m, I64({2, 1}, {2, 1})}, {}, {F32({2, 2}, {4, 5, 2, 3})}});
  c.push_back({"one", "GATHER_ND", {m, I32({2}, {1, 1})}, {}, {F32({}, {3})}});
  c.push_back({"all of it, by no index", "GATHER_ND", {m, I32({1, 0}, {0})}, {}, {Iota<float>({1, 3, 2})}});
  c.push_back({.name = "index out of range",
               .op = "GATHER_ND",
               .operands = {m, I32({1, 2}, {0, 2})},
               .results = {F32({1}, {0})},
               .error = "index 2 is outside of dimension 2"});
  c.push_back({.name = "too deep",
               .op = "GATHER_ND",
               .operands = {m, I32({1, 3}, {0})},
               .error = "indices of 3 for rank 2"});
}

const Suite kSuite("gather", [](Cases& c) {
  AddGather(c);
  c.push_back({"elements, twice the same adds up",
               "SCATTER_ND",
               {I32({3, 1}, {1, 3, 1}), F32({3}, {1, 2, 4}), I32({1}, {5})},
               {},
               {F32({5}, {0, 5, 0, 2, 0})}});
  c.push_back({"rows",
               "SCATTER_ND",
               {I64({1, 1}, {1}), I32({1, 2}, {7, 8}), I64({2}, {3, 2})},
               {},
               {I32({3, 2}, {0, 0, 7, 8, 0, 0})}});
  c.push_back({"integers wrap",
               "SCATTER_ND",
               {I32({2, 1}, {0, 0}), I8({2}, {127, 1}), I32({1}, {1})},
               {},
               {I8({1}, {-128})}});
  c.push_back(
      {"nothing", "SCATTER_ND", {I32({0, 1}, {0}), F32({0}, {0}), I32({1}, {2})}, {}, {F32({2}, {0})}});
  c.push_back({.name = "index out of range",
               .op = "SCATTER_ND",
               .operands = {I32({1, 1}, {5}), F32({1}, {1}), I32({1}, {5})},
               .results = {F32({5}, {0})},
               .error = "index 5 is outside of dimension 5"});
  c.push_back({"quantized",
               "SCATTER_ND",
               {I32({2, 1}, {1, 1}), I8({2}, {5, -2}).Quantized(0.5f, 0), I32({1}, {3})},
               {},
               {I8({3}, {0, 3, 0}).Quantized(0.5f, 0)}});
  c.push_back({.name = "quantized with a zero point",
               .op = "SCATTER_ND",
               .operands = {I32({1, 1}, {0}), I8({1}, {5}).Quantized(0.5f, 3), I32({1}, {3})},
               .results = {I8({3}, {0}).Quantized(0.5f, 3)},
               .refused = "updates with a zero point"});
  c.push_back({.name = "updates of another shape",
               .op = "SCATTER_ND",
               .operands = {I32({2, 1}, {0}), F32({3}, {1}), I32({1}, {5})},
               .error = "differ: 3 and 2"});
  c.push_back({.name = "negative shape",
               .op = "SCATTER_ND",
               .operands = {I32({1, 1}, {0}), F32({1}, {1}), I32({1}, {-5})},
               .error = "a dimension of -5"});

  const Data table = Iota<float>({3, 2});
  c.push_back(
      {"rows", "EMBEDDING_LOOKUP", {I32({3}, {1, 2, 1}), table}, {}, {F32({3, 2}, {2, 3, 4, 5, 2, 3})}});
  c.push_back({"none", "EMBEDDING_LOOKUP", {I32({0}, {0}), table}, {}, {F32({0, 2}, {0})}});
  c.push_back({.name = "out of range",
               .op = "EMBEDDING_LOOKUP",
               .operands = {I32({1}, {3}), table},
               .results = {F32({1, 2}, {0})},
               .error = "index 3 is outside of dimension 3"});
});

}  // namespace
}  // namespace fusebox::conformance
