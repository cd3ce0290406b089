// SPDX-License-Identifier: Apache-2.0
// Quantized values to a result without a scale. Ops that select or average values keep the scale, so they
// run, as in stock TFLite. ADD and SUB end stock's process, MUL returns zeros there: ops that compute a new
// scale are rejected.
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

const Suite kUnscaled("unscaled results", [](Cases& c) {
  const Data image = I8({1, 2, 2, 1}, {1, -5, 7, 4}).Quantized(0.5f, 3),
             x = I8({2}, {1, -5}).Quantized(0.5f, 3), y = I8({2}, {-7, 2}).Quantized(0.5f, 3),
             axes = I32({1}, {0});
  const std::vector<Attr> window = {
      {"padding", "VALID"}, {"stride_h", 2}, {"stride_w", 2}, {"filter_height", 2}, {"filter_width", 2}};
  const auto runs = [&](const char* op, std::vector<Data> operands, Data result,
                        std::vector<Attr> attrs = {}) {
    c.push_back({"a result without a scale", op, std::move(operands), std::move(attrs), {std::move(result)}});
  };
  runs("MAX_POOL_2D", {image}, I8({1, 1, 1, 1}, {7}), window);
  runs("AVERAGE_POOL_2D", {image}, I8({1, 1, 1, 1}, {2}), window);
  runs("MAXIMUM", {x, y}, I8({2}, {1, 2}));
  runs("MINIMUM", {x, y}, I8({2}, {-7, -5}));
  runs("REDUCE_MAX", {x, axes}, I8({}, {1}));
  runs("REDUCE_MIN", {x, axes}, I8({}, {-5}));
  runs("RESIZE_BILINEAR", {image, I32({2}, {1, 2})}, I8({1, 1, 2, 1}, {1, -5}));
  for (const char* op : {"ADD", "SUB", "MUL"})
    c.push_back({.name = "a result without a scale",
                 .op = op,
                 .operands = {x, y},
                 .results = {I8({2}, {0})},
                 .refused = "i8 to a result without a scale"});
  c.push_back({.name = "two scales to a result without one",
               .op = "MAXIMUM",
               .operands = {x, I8({2}, {1}).Quantized(1, 0)},
               .results = {I8({2}, {0})},
               .refused = "the operands have different scales"});
});

}  // namespace
}  // namespace fusebox::conformance
