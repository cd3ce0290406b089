// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

// The definition, one element at a time: result index j stands at operand index i with i[perm[k]] = j[k].
Data Transposed(const Data& in, const std::vector<int>& perm) {
  const std::vector<float> x = As<float>(in);
  std::vector<int64_t> dims;
  for (const int p : perm) dims.push_back(in.dims[static_cast<size_t>(p)]);
  std::vector<float> y(x.size());
  for (size_t to = 0; to < y.size(); ++to) {
    std::vector<int64_t> index(perm.size());
    auto rest = static_cast<int64_t>(to);
    for (size_t k = perm.size(); k-- > 0;) {
      index[static_cast<size_t>(perm[k])] = rest % dims[k];
      rest /= dims[k];
    }
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d) from = from * in.dims[d] + index[d];
    y[to] = x[static_cast<size_t>(from)];
  }
  return F32(dims, y.empty() ? std::vector<float>{0} : y);
}

Case Permuted(std::string name, std::vector<int64_t> dims, const std::vector<int>& perm) {
  const Data in = Iota<float>(std::move(dims));
  return {std::move(name),
          "TRANSPOSE",
          {in, I32({static_cast<int64_t>(perm.size())}, {perm.begin(), perm.end()})},
          {},
          {Transposed(in, perm)}};
}

const Suite kSuite("transpose", [](Cases& c) {
  c.push_back({"a matrix",
               "TRANSPOSE",
               {Iota<float>({2, 3}), I32({2}, {1, 0})},
               {},
               {F32({3, 2}, {0, 3, 1, 4, 2, 5})}});
  c.push_back({"counted from the back",
               "TRANSPOSE",
               {Iota<float>({2, 3}), I32({2}, {-1, -2})},
               {},
               {F32({3, 2}, {0, 3, 1, 4, 2, 5})}});
  c.push_back(
      {"bytes", "TRANSPOSE", {U8({2, 2}, {1, 2, 3, 4}), I32({2}, {1, 0})}, {}, {U8({2, 2}, {1, 3, 2, 4})}});
  c.push_back(
      {"i16", "TRANSPOSE", {I16({2, 2}, {1, 2, 3, 4}), I64({2}, {1, 0})}, {}, {I16({2, 2}, {1, 3, 2, 4})}});
  c.push_back(Permuted("nothing to do", {2, 3, 4}, {0, 1, 2}));
  c.push_back(Permuted("inner pair", {3, 5, 7}, {0, 2, 1}));
  c.push_back(Permuted("outer pair", {3, 5, 7}, {1, 0, 2}));
  c.push_back(Permuted("around", {3, 5, 7}, {2, 0, 1}));
  c.push_back(Permuted("large, not a multiple of a block", {67, 3, 129}, {2, 1, 0}));
  c.push_back(Permuted("images to channels first", {2, 17, 19, 3}, {0, 3, 1, 2}));
  c.push_back(Permuted("few columns, many rows", {2, 3, 523}, {0, 2, 1}));
  c.push_back(Permuted("ones", {1, 4, 1, 3}, {3, 2, 1, 0}));
  c.push_back(Permuted("zero size", {2, 0, 3}, {2, 1, 0}));
  c.push_back(Permuted("rank 6", {2, 3, 2, 3, 2, 3}, {5, 0, 4, 1, 3, 2}));
  c.push_back(Permuted("a scalar", {}, {}));
  c.push_back({.name = "twice the same",
               .op = "TRANSPOSE",
               .operands = {Iota<float>({2, 3}), I32({2}, {1, 1})},
               .error = "axis 1 is duplicated"});
  c.push_back({.name = "too short",
               .op = "TRANSPOSE",
               .operands = {Iota<float>({2, 3}), I32({1}, {0})},
               .error = "a permutation of 1 for rank 2"});
  c.push_back({.name = "out of range",
               .op = "TRANSPOSE",
               .operands = {Iota<float>({2, 3}), I32({2}, {0, 2})},
               .error = "axis 2 is outside"});

  c.push_back({"one axis",
               "REVERSE_V2",
               {Iota<float>({2, 3}), I32({1}, {1})},
               {},
               {F32({2, 3}, {2, 1, 0, 5, 4, 3})}});
  c.push_back({"two axes, one from the back",
               "REVERSE_V2",
               {Iota<float>({2, 3}), I32({2}, {0, -1})},
               {},
               {F32({2, 3}, {5, 4, 3, 2, 1, 0})}});
  c.push_back({"the middle",
               "REVERSE_V2",
               {Iota<int32_t>({2, 2, 2}), I32({1}, {1})},
               {},
               {I32({2, 2, 2}, {2, 3, 0, 1, 6, 7, 4, 5})}});
  c.push_back({"none", "REVERSE_V2", {Iota<float>({2}), I32({0}, {0})}, {}, {Iota<float>({2})}});
  c.push_back({"nothing", "REVERSE_V2", {F32({0, 2}, {0}), I32({1}, {0})}, {}, {F32({0, 2}, {0})}});
  c.push_back({"large",
               "REVERSE_V2",
               {Iota<int32_t>({1, 40000}), I32({1}, {1})},
               {},
               {Iota<int32_t>({1, 40000}, 39999, -1)}});
  c.push_back({.name = "twice the same",
               .op = "REVERSE_V2",
               .operands = {Iota<float>({2, 3}), I32({2}, {1, -1})},
               .error = "is duplicated"});
  c.push_back({.name = "out of range",
               .op = "REVERSE_V2",
               .operands = {Iota<float>({2, 3}), I32({1}, {2})},
               .error = "axis 2 is outside"});

  c.push_back({"batch first",
               "REVERSE_SEQUENCE",
               {Iota<float>({3, 4}), I32({3}, {0, 2, 4})},
               {{"seq_dim", 1}, {"batch_dim", 0}},
               {F32({3, 4}, {0, 1, 2, 3, 5, 4, 6, 7, 11, 10, 9, 8})}});
  c.push_back({"time first, with a rest",
               "REVERSE_SEQUENCE",
               {Iota<float>({3, 2, 2}), I64({2}, {3, 2})},
               {{"seq_dim", 0}, {"batch_dim", 1}},
               {F32({3, 2, 2}, {8, 9, 6, 7, 4, 5, 2, 3, 0, 1, 10, 11})}});
  c.push_back({.name = "too long",
               .op = "REVERSE_SEQUENCE",
               .operands = {Iota<float>({1, 2}), I32({1}, {3})},
               .attrs = {{"seq_dim", 1}},
               .error = "length 3 of a sequence of 2"});
  c.push_back({.name = "one axis for both",
               .op = "REVERSE_SEQUENCE",
               .operands = {Iota<float>({1, 2}), I32({1}, {1})},
               .attrs = {{"seq_dim", 0}},
               .error = "are both 0"});
  c.push_back({.name = "lengths of another batch",
               .op = "REVERSE_SEQUENCE",
               .operands = {Iota<float>({1, 2}), I32({2}, {1, 1})},
               .attrs = {{"seq_dim", 1}},
               .error = "differ: 2 and 1"});
});

}  // namespace
}  // namespace fusebox::conformance
