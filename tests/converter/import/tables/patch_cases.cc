// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "tests/converter/import/tables/translate_cases.h"

namespace fusebox::converter {
namespace {

using Ints = std::vector<int64_t>;

Attrs Windows(int64_t size, int64_t stride, int64_t rate, const char* padding) {
  return A("ksizes", Ints{1, size, size, 1}, "strides", Ints{1, stride, stride, 1}, "rates",
           Ints{1, rate, rate, 1}, "padding", padding);
}

// 1, 2, 3, ... by rows and channels.
Tensor Counting(std::vector<int64_t> dims) {
  std::vector<float> values(static_cast<size_t>(*Shape(dims).element_count()));
  std::iota(values.begin(), values.end(), 1.0f);
  return F(std::move(dims), values);
}

}  // namespace

std::vector<SourceOp> PatchCases() {
  const Tensor square = Counting({1, 3, 3, 1}), deep = Counting({1, 2, 4, 2});
  const Tensor rows = F({3, 2}, {1, 2, 3, 4, 5, 6}), numbers = I({3}, {1, 0, 1});
  return {
      {"ExtractImagePatches",
       {deep},
       {1, 2, 3, 4, 9, 10, 11, 12, 5, 6, 7, 8, 13, 14, 15, 16},
       Windows(2, 2, 1, "VALID")},
      {"ExtractImagePatches", {square}, {1, 2, 4, 5}, Windows(2, 2, 1, "VALID")},
      {"ExtractImagePatches",
       {square},
       {1, 2, 4, 5, 2, 3, 5, 6, 4, 5, 7, 8, 5, 6, 8, 9},
       Windows(2, 1, 1, "VALID")},
      {"ExtractImagePatches",
       {square},
       {1, 2, 4, 5, 3, 0, 6, 0, 7, 8, 0, 0, 9, 0, 0, 0},
       Windows(2, 2, 1, "SAME")},
      {"ExtractImagePatches", {square}, {1, 3, 7, 9}, Windows(2, 1, 2, "VALID")},
      {"DynamicPartition", {rows, numbers}, {3, 4}, {}, 2, 2},
      {"DynamicPartition", {rows, numbers}, {1, 2, 5, 6}, {}, 2, 2, 1},
      {"UnravelIndex", {I({3}, {22, 0, 5}), I({2}, {7, 6})}, {3, 0, 0, 4, 0, 5}},
      {"UnravelIndex", {L({}, {13}), L({3}, {2, 3, 4})}, {1, 0, 1}},
      {"SparseToDense", {L({2, 1}, {1, 3}), L({1}, {5}), F({2}, {7, 8}), F({}, {-1})}, {-1, 7, -1, 8, -1}},
      {"FakeQuantWithMinMaxVarsPerChannel",
       {F({2, 2}, {-9, 0.2f, 1.3f, 0.4f}), F({2}, {-2, -0.5f}), F({2}, {5.5f, 0.5f})},
       {-2, 3.0 / 15, 1.5, 6.0 / 15},
       A("num_bits", 4)},
  };
}

}  // namespace fusebox::converter
