// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddBatches(Cases& c) {
  const Data none = I32({2, 2}, {0}), two = I32({2}, {2, 2});
  c.push_back({"blocks",
               "SPACE_TO_BATCH_ND",
               {F32({1, 2, 2, 1}, {1, 2, 3, 4}), two, none},
               {},
               {F32({4, 1, 1, 1}, {1, 2, 3, 4})}});
  c.push_back({"two batches",
               "SPACE_TO_BATCH_ND",
               {Iota<float>({2, 2, 2, 1}), two, none},
               {},
               {F32({8, 1, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7})}});
  c.push_back({"padded",
               "SPACE_TO_BATCH_ND",
               {F32({1, 1, 3, 1}, {1, 2, 3}), I32({2}, {1, 2}), I32({2, 2}, {0, 0, 2, 1})},
               {},
               {F32({2, 1, 3, 1}, {0, 1, 3, 0, 2, 0})}});
  c.push_back({"odd padding",
               "SPACE_TO_BATCH_ND",
               {I32({1, 3, 1}, {1, 2, 3}), I32({1}, {2}), I32({1, 2}, {1, 0})},
               {},
               {I32({2, 2, 1}, {0, 2, 1, 3})}});
  c.push_back({"quantized, with its zero",
               "SPACE_TO_BATCH_ND",
               {I8({1, 1, 1}, {5}).Quantized(1, 7), I32({1}, {2}), I32({1, 2}, {0, 1})},
               {},
               {I8({2, 1, 1}, {5, 7}).Quantized(1, 7)}});
  c.push_back({.name = "does not divide",
               .op = "SPACE_TO_BATCH_ND",
               .operands = {F32({1, 3, 2, 1}, {0}), two, none},
               .error = "3 is not a multiple of 2"});
  c.push_back({.name = "a block of 0",
               .op = "SPACE_TO_BATCH_ND",
               .operands = {F32({1, 2, 2, 1}, {0}), I32({2}, {0, 2}), none},
               .error = "a block of 0"});

  c.push_back({"blocks",
               "BATCH_TO_SPACE_ND",
               {F32({4, 1, 1, 1}, {1, 2, 3, 4}), two, none},
               {},
               {F32({1, 2, 2, 1}, {1, 2, 3, 4})}});
  c.push_back({"two batches",
               "BATCH_TO_SPACE_ND",
               {F32({8, 1, 1, 1}, {0, 4, 1, 5, 2, 6, 3, 7}), two, none},
               {},
               {Iota<float>({2, 2, 2, 1})}});
  c.push_back({"cropped",
               "BATCH_TO_SPACE_ND",
               {F32({2, 1, 3, 1}, {0, 1, 3, 0, 2, 0}), I32({2}, {1, 2}), I32({2, 2}, {0, 0, 2, 1})},
               {},
               {F32({1, 1, 3, 1}, {1, 2, 3})}});
  c.push_back({"rank 3",
               "BATCH_TO_SPACE_ND",
               {I32({2, 2, 1}, {0, 2, 1, 3}), I32({1}, {2}), I32({1, 2}, {1, 0})},
               {},
               {I32({1, 3, 1}, {1, 2, 3})}});
  c.push_back({"all cropped away",
               "BATCH_TO_SPACE_ND",
               {F32({2, 1, 1}, {1, 2}), I32({1}, {2}), I32({1, 2}, {1, 1})},
               {},
               {F32({1, 0, 1}, {0})}});
  c.push_back({.name = "batch does not divide",
               .op = "BATCH_TO_SPACE_ND",
               .operands = {F32({3, 1, 1, 1}, {0}), two, none},
               .error = "the batch 3 is not a multiple of 4"});
  c.push_back({.name = "crops too much",
               .op = "BATCH_TO_SPACE_ND",
               .operands = {F32({4, 1, 1, 1}, {0}), two, I32({2, 2}, {2, 1, 0, 0})},
               .error = "crops exceed"});
}

void AddResizes(Cases& c) {
  const Data size = I32({2}, {2, 4}), row = F32({1, 1, 2, 1}, {1, 3}),
             square = F32({1, 2, 2, 1}, {1, 3, 5, 7});
  const Attr corners{"align_corners", true}, half{"half_pixel_centers", true};
  c.push_back(
      {"up", "RESIZE_NEAREST_NEIGHBOR", {row, size}, {}, {F32({1, 2, 4, 1}, {1, 1, 3, 3, 1, 1, 3, 3})}});
  c.push_back({"down",
               "RESIZE_NEAREST_NEIGHBOR",
               {Iota<int32_t>({1, 4, 4, 1}), I32({2}, {2, 2})},
               {},
               {I32({1, 2, 2, 1}, {0, 2, 8, 10})}});
  c.push_back({"down, half pixels",
               "RESIZE_NEAREST_NEIGHBOR",
               {Iota<int32_t>({1, 4, 4, 1}), I32({2}, {2, 2})},
               {half},
               {I32({1, 2, 2, 1}, {5, 7, 13, 15})}});
  c.push_back({"aligned corners",
               "RESIZE_NEAREST_NEIGHBOR",
               {row, I32({2}, {1, 4})},
               {corners},
               {F32({1, 1, 4, 1}, {1, 1, 3, 3})}});
  c.push_back({"channels and batches",
               "RESIZE_NEAREST_NEIGHBOR",
               {U8({2, 1, 1, 2}, {1, 2, 3, 4}), I32({2}, {1, 2})},
               {},
               {U8({2, 1, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4})}});
  c.push_back({.name = "up",
               .op = "RESIZE_BILINEAR",
               .operands = {row, I32({2}, {1, 4})},
               .results = {F32({1, 1, 4, 1}, {1, 2, 3, 3})},
               .atol = 1e-6});
  c.push_back({.name = "half pixels",
               .op = "RESIZE_BILINEAR",
               .operands = {row, I32({2}, {1, 4})},
               .attrs = {half},
               .results = {F32({1, 1, 4, 1}, {1, 1.5f, 2.5f, 3})},
               .atol = 1e-6});
  c.push_back({.name = "aligned corners",
               .op = "RESIZE_BILINEAR",
               .operands = {square, I32({2}, {3, 3})},
               .attrs = {corners},
               .results = {F32({1, 3, 3, 1}, {1, 2, 3, 3, 4, 5, 5, 6, 7})},
               .atol = 1e-6});
  c.push_back({.name = "aligned corners to one pixel",
               .op = "RESIZE_BILINEAR",
               .operands = {square, I32({2}, {1, 1})},
               .attrs = {corners},
               .results = {F32({1, 1, 1, 1}, {1})},
               .atol = 1e-6});
  c.push_back({.name = "down, two channels",
               .op = "RESIZE_BILINEAR",
               .operands = {F32({1, 2, 2, 2}, {1, 10, 3, 30, 5, 50, 7, 70}), I32({2}, {1, 1})},
               .attrs = {half},
               .results = {F32({1, 1, 1, 2}, {4, 40})},
               .atol = 1e-5});
  c.push_back({"no batch", "RESIZE_BILINEAR", {F32({0, 2, 2, 1}, {0}), size}, {}, {F32({0, 2, 4, 1}, {0})}});
  c.push_back({"both grids",
               "RESIZE_NEAREST_NEIGHBOR",
               {F32({1, 1, 3, 1}, {1, 2, 3}), I32({2}, {1, 5})},
               {corners, half},
               {F32({1, 1, 5, 1}, {1, 2, 2, 3, 3})}});
  c.push_back({.name = "both grids",
               .op = "RESIZE_BILINEAR",
               .operands = {row, size},
               .attrs = {corners, half},
               .error = "cannot be combined with half_pixel_centers"});
  for (const char* op : {"RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"}) {
    c.push_back({.name = "to nothing",
                 .op = op,
                 .operands = {row, I32({2}, {0, 4})},
                 .error = "a height and a width of 1 or more"});
    c.push_back({.name = "of nothing",
                 .op = op,
                 .operands = {F32({1, 0, 2, 1}, {0}), size},
                 .error = "an image without pixels"});
    c.push_back({.name = "rank 3",
                 .op = op,
                 .operands = {F32({1, 2, 1}, {0}), size},
                 .error = "expected rank 4, got 3"});
  }
}

const Suite kSuite("space", [](Cases& c) {
  c.push_back({"blocks",
               "SPACE_TO_DEPTH",
               {F32({1, 2, 2, 1}, {1, 2, 3, 4})},
               {{"block_size", 2}},
               {F32({1, 1, 1, 4}, {1, 2, 3, 4})}});
  c.push_back({"channels",
               "SPACE_TO_DEPTH",
               {Iota<int32_t>({1, 2, 4, 2})},
               {{"block_size", 2}},
               {I32({1, 1, 2, 8}, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15})}});
  c.push_back({.name = "does not divide",
               .op = "SPACE_TO_DEPTH",
               .operands = {F32({1, 2, 3, 1}, {0})},
               .attrs = {{"block_size", 2}},
               .error = "width 3 is not a multiple of 2"});
  c.push_back({.name = "a block of 0",
               .op = "SPACE_TO_DEPTH",
               .operands = {F32({1, 2, 3, 1}, {0})},
               .attrs = {{"block_size", 0}},
               .error = "is 0"});
  c.push_back({"blocks",
               "DEPTH_TO_SPACE",
               {F32({1, 1, 1, 4}, {1, 2, 3, 4})},
               {{"block_size", 2}},
               {F32({1, 2, 2, 1}, {1, 2, 3, 4})}});
  c.push_back({"channels",
               "DEPTH_TO_SPACE",
               {I32({1, 1, 2, 8}, {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15})},
               {{"block_size", 2}},
               {Iota<int32_t>({1, 2, 4, 2})}});
  c.push_back({"no batch",
               "DEPTH_TO_SPACE",
               {F32({0, 1, 1, 4}, {0})},
               {{"block_size", 2}},
               {F32({0, 2, 2, 1}, {0})}});
  c.push_back({.name = "does not divide",
               .op = "DEPTH_TO_SPACE",
               .operands = {F32({1, 1, 1, 6}, {0})},
               .attrs = {{"block_size", 2}},
               .error = "depth 6 is not a multiple of 4"});
  AddBatches(c);
  AddResizes(c);
});

}  // namespace
}  // namespace fusebox::conformance
