// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

struct Dimensions {
  Dims window, inserted, to_operand;
  int64_t vector;
};

Case Of(const char* name, const char* function, std::vector<Data> operands, const Dimensions& d,
        Data result) {
  return {name,
          "STABLEHLO_SCATTER",
          std::move(operands),
          {{"computation", function},
           {"update_window_dims", d.window},
           {"inserted_window_dims", d.inserted},
           {"scatter_dims_to_operand_dims", d.to_operand},
           {"index_vector_dim", d.vector}},
          {std::move(result)}};
}

Case Failing(Case c, const char* error) {
  c.error = error;
  return c;
}

// Rows and columns of the specification's example; the last index is outside.
const Dimensions kPairs{{2, 3}, {0}, {1, 0}, 2};
const Data kIndices = I64({2, 3, 2}, {0, 2, 1, 0, 2, 1, 0, 1, 1, 0, 0, 9});

std::vector<Data> Pairs() { return {Iota<float>({3, 4, 2}, 1), kIndices, F32({2, 3, 2, 2}, {2})}; }

void AddWindows(Cases& c) {
  c.push_back(Of("adds windows", "ADD", Pairs(), kPairs,
                 F32({3, 4, 2}, {1,  2,  7,  8,  9,  10, 7,  8,  11, 12, 13, 14,
                                 15, 16, 17, 18, 19, 20, 21, 22, 21, 22, 23, 24})));
  c.push_back(Of("multiplies windows", "MUL", Pairs(), kPairs,
                 F32({3, 4, 2}, {1,  2,  12, 16, 20, 24, 7,  8,  18, 20, 22, 24,
                                 26, 28, 30, 32, 34, 36, 38, 40, 21, 22, 23, 24})));
  c.push_back(Of("takes the larger", "MAXIMUM", Pairs(), kPairs, Iota<float>({3, 4, 2}, 1)));
  const Data two =
      F32({3, 4, 2}, {1, 2, 2, 2, 2, 2, 7, 8, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 21, 22, 23, 24});
  c.push_back(Of("takes the smaller", "MINIMUM", Pairs(), kPairs, two));
  c.push_back(Of("replaces windows", "UPDATE", Pairs(), kPairs, two));
}

void AddElements(Cases& c) {
  const Dimensions single{{}, {0}, {0}, 1};
  c.push_back(Of("the last of equal indices stays", "UPDATE",
                 {I32({4}, {1, 2, 3, 4}), I32({3, 1}, {1, 3, 1}), I32({3}, {7, 8, 9})}, single,
                 I32({4}, {1, 9, 3, 8})));
  c.push_back(Of("negative and large indices", "ADD",
                 {I8({3}, {1, 127, 3}), I32({4, 1}, {-1, 1, 3, 2}), I8({4}, {9, 1, 9, 4})}, single,
                 I8({3}, {1, -128, 7})));
  c.push_back(Of("indices without a vector", "ADD",
                 {F32({2, 3}, {0}), I64({2}, {2, 0}), F32({2, 2}, {1, 2, 3, 4})}, {{1}, {1}, {1}, 1},
                 F32({2, 3}, {3, 0, 1, 4, 0, 2})));
  c.push_back(Of("a window that sticks out is dropped in part", "UPDATE",
                 {F32({4}, {0}), I64({1, 1}, {2}), F32({1, 3}, {1, 2, 3})}, {{1}, {}, {0}, 1},
                 F32({4}, {0, 0, 1, 2})));
  c.push_back(Of("a window from before", "UPDATE", {F32({4}, {0}), I64({1, 1}, {-1}), F32({1, 3}, {1, 2, 3})},
                 {{1}, {}, {0}, 1}, F32({4}, {2, 3, 0, 0})));
  c.push_back(Of("truths", "ANY",
                 {Bool({3}, {false, true, false}), I64({2, 1}, {0, 1}), Bool({2}, {true, false})}, single,
                 Bool({3}, {true, true, false})));
  c.push_back(Of("all truths", "ALL",
                 {Bool({3}, {false, true, true}), I64({2, 1}, {0, 1}), Bool({2}, {true, false})}, single,
                 Bool({3}, {false, false, true})));
  c.push_back(
      Of("no updates", "ADD", {F32({2}, {1, 2}), I64({0, 1}, {0}), F32({0}, {0})}, single, F32({2}, {1, 2})));
  c.push_back(Of("nothing", "ADD", {F32({0}, {0}), I64({1, 1}, {0}), F32({1}, {5})}, single, F32({0}, {0})));
  c.push_back(Of("extreme indices", "ADD",
                 {F32({2}, {1, 2}), I64({2, 1}, {INT64_MAX, INT64_MIN}), F32({2, 2}, {5})}, {{1}, {}, {0}, 1},
                 F32({2}, {1, 2})));
}

// As updates of a KV cache [batch, position, ...].
void AddRows(Cases& c) {
  const Dimensions rows{{0, 2}, {1}, {1}, 1};
  c.push_back(Of("rows at positions", "UPDATE",
                 {Iota<float>({2, 3, 2}, 1), I64({2, 1}, {2, 0}), Iota<float>({2, 2, 2}, 20)}, rows,
                 F32({2, 3, 2}, {22, 23, 3, 4, 20, 21, 26, 27, 9, 10, 24, 25})));
  c.push_back(Of("adds rows, some outside", "ADD",
                 {Iota<float>({1, 3, 2}, 1), I32({4, 1}, {1, -1, 3, 1}), Iota<float>({1, 4, 2}, 10)}, rows,
                 F32({1, 3, 2}, {1, 2, 29, 32, 5, 6})));
  c.push_back(Of("as many rows as the tensor has", "UPDATE",
                 {F32({1, 2, 2}, {0}), I64({2, 1}, {1, 0}), F32({1, 2, 2}, {1, 2, 3, 4})}, rows,
                 F32({1, 2, 2}, {3, 4, 1, 2})));
  c.push_back(Of("positions of the tensor's size", "UPDATE",
                 {I32({1, 2, 1}, {5, 6}), I32({2, 1}, {1, 0}), I32({1, 2, 1}, {7, 8})}, rows,
                 I32({1, 2, 1}, {8, 7})));
}

void AddRefused(Cases& c) {
  const Data one = F32({4}, {0}), at = I64({1, 1}, {0}), update = F32({1}, {1});
  const auto refuse = [&](const char* name, const Dimensions& d, const char* error) {
    c.push_back(Failing(Of(name, "ADD", {one, at, update}, d, one), error));
  };
  refuse("a dimension outside", {{}, {1}, {0}, 1}, "dimension 1 is outside of rank 1");
  refuse("a negative dimension", {{}, {0}, {-1}, 1}, "dimension -1 is outside of rank 1");
  refuse("an index dimension outside", {{}, {0}, {0}, 3}, "is 3 for rank 2");
  refuse("no inserted dimension", {{}, {}, {0}, 1}, "for rank 1");
  refuse("a window too many", {{0}, {}, {0}, 1}, "rank 1, expected 2");
  refuse("too few indices", {{}, {0}, {}, 1}, "indices of 1 for 0 dimensions");
  c.push_back(Failing(Of("a large window", "ADD", {one, at, F32({1, 5}, {0})}, {{1}, {}, {0}, 1}, one),
                      "a window of 5 for dimension 0 of [4]"));
  c.push_back(Failing(Of("other sizes", "ADD", {one, at, F32({2}, {0})}, {{}, {0}, {0}, 1}, one),
                      "sizes of updates and indices differ: 2 and 1"));
  c.push_back({.name = "without a known body",
               .op = "STABLEHLO_SCATTER",
               .operands = {one, at, update},
               .refused = "the body is neither"});
  Case words = Of("sums of words", "ADD", {Text({1}, {"a"}), at, Text({1}, {"b"})}, {{}, {0}, {0}, 1}, {});
  words.results = {};
  words.refused = "dtype string is unsupported";
  c.push_back(words);
}

const Suite kSuite("stablehlo_scatter", [](Cases& c) {
  AddWindows(c);
  AddElements(c);
  AddRows(c);
  AddRefused(c);
});

}  // namespace
}  // namespace fusebox::conformance
