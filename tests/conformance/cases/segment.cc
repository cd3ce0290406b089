// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr int32_t kLow = std::numeric_limits<int32_t>::lowest(), kHigh = std::numeric_limits<int32_t>::max();

const Suite kSegment("segment", [](Cases& c) {
  const Data rows = F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  c.push_back({"sums neighbors",
               "SEGMENT_SUM",
               {rows, I32({4}, {0, 0, 2, 2})},
               {},
               {F32({3, 2}, {4, 6, 0, 0, 12, 14})}});
  c.push_back({"sums integers",
               "SEGMENT_SUM",
               {I32({3}, {kHigh, 1, 5}), I32({3}, {0, 0, 1})},
               {},
               {I32({2}, {kLow, 5})}});
  c.push_back({"sums nothing", "SEGMENT_SUM", {F32({0, 2}, {0}), I32({0}, {0})}, {}, {F32({0, 2}, {0})}});
  c.push_back({.name = "refuses segments that go down",
               .op = "SEGMENT_SUM",
               .operands = {rows, I32({4}, {0, 1, 0, 1})},
               .error = "segment 0 after segment 1"});
  c.push_back({.name = "refuses negative segments",
               .op = "SEGMENT_SUM",
               .operands = {rows, I32({4}, {-1, 0, 0, 1})},
               .error = "segment -1 after segment 0"});

  const Data ids = I32({4}, {2, 0, -1, 2}), three = I32({}, {3});
  c.push_back({"sums", "UNSORTED_SEGMENT_SUM", {rows, ids, three}, {}, {F32({3, 2}, {3, 4, 0, 0, 8, 10})}});
  c.push_back(
      {"multiplies", "UNSORTED_SEGMENT_PROD", {rows, ids, three}, {}, {F32({3, 2}, {3, 4, 1, 1, 7, 16})}});
  const Data whole = I32({4}, {1, 5, 3, -4});
  c.push_back({"takes the most", "UNSORTED_SEGMENT_MAX", {whole, ids, three}, {}, {I32({3}, {5, kLow, 1})}});
  c.push_back(
      {"takes the least", "UNSORTED_SEGMENT_MIN", {whole, ids, three}, {}, {I32({3}, {5, kHigh, -4})}});
  c.push_back({"takes single elements",
               "UNSORTED_SEGMENT_SUM",
               {I64({2, 2}, {1, 2, 3, 4}), I64({2, 2}, {0, 1, 1, 0}), I32({}, {2})},
               {},
               {I64({2}, {5, 5})}});
  c.push_back({.name = "refuses a segment too many",
               .op = "UNSORTED_SEGMENT_SUM",
               .operands = {rows, I32({4}, {0, 1, 2, 3}), three},
               .error = "segment 3 of 3"});
  c.push_back({.name = "refuses sizes that differ",
               .op = "UNSORTED_SEGMENT_SUM",
               .operands = {rows, I32({3}, {0, 1, 2}), three},
               .error = "sizes of the data and of the segments differ: 4 and 3"});
});

const Suite kBucketize("bucketize", [](Cases& c) {
  const std::vector<double> bounds = {-1, 0, 2.5};
  c.push_back({"counts the boundaries below",
               "BUCKETIZE",
               {F32({6}, {-2, -1, -0.5, 0, 2.5, 9})},
               {{"boundaries", bounds}},
               {I32({6}, {0, 1, 1, 2, 3, 3})}});
  c.push_back({"counts for integers",
               "BUCKETIZE",
               {I64({2, 1}, {-5, 3})},
               {{"boundaries", bounds}},
               {I32({2, 1}, {0, 3})}});
  c.push_back({.name = "refuses boundaries that go down",
               .op = "BUCKETIZE",
               .operands = {F32({1}, {0})},
               .attrs = {{"boundaries", std::vector<double>{1, 0}}},
               .error = "are not ascending"});
});

const Suite kSetDiag("set_diag", [](Cases& c) {
  c.push_back({"sets a diagonal",
               "MATRIX_SET_DIAG",
               {I32({2, 3}, {1, 2, 3, 4, 5, 6}), I32({2}, {8, 9})},
               {},
               {I32({2, 3}, {8, 2, 3, 4, 9, 6})}});
  c.push_back({"sets that of each matrix",
               "MATRIX_SET_DIAG",
               {F32({2, 2, 1}, {1, 2, 3, 4}), F32({2, 1}, {8, 9})},
               {},
               {F32({2, 2, 1}, {8, 2, 9, 4})}});
  c.push_back({.name = "refuses a diagonal of another size",
               .op = "MATRIX_SET_DIAG",
               .operands = {I32({2, 3}, {0}), I32({3}, {0})},
               .error = "a diagonal of [3] for matrices of [2,3]"});
});

}  // namespace
}  // namespace fusebox::conformance
