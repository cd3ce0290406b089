// SPDX-License-Identifier: Apache-2.0
// Sums of bytes that end halfway between two quantized values, where stock TFLite rounds differently from op
// to op: what is expected is what it computes. It rounds twice, so that a quarter may become one.
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

// Products of -6 to 6 by a quarter.
const Data kSums = I8({1, 1, 13, 1}, {-6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6}).Quantized(0.5f, 0);

const Suite kHalves("halves", [](Cases& c) {
  const Data up = I8({1, 1, 13, 1}, {-1, -1, -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2}).Quantized(1, 0);
  const Data away = I8({1, 1, 13, 1}, {-2, -1, -1, -1, -1, 0, 0, 1, 1, 1, 1, 2, 2}).Quantized(1, 0);
  const Data one = I8({1, 1, 1, 1}, {1}).Quantized(0.5f, 0);
  const std::vector<Attr> steps = {{"padding", "VALID"}, {"stride_h", 1}, {"stride_w", 1}};
  c.push_back({.name = "halves up",
               .op = "CONV_2D",
               .operands = {kSums, one, Absent()},
               .attrs = steps,
               .results = {up}});
  c.push_back({.name = "halves away from zero",
               .op = "DEPTHWISE_CONV_2D",
               .operands = {kSums, one, Absent()},
               .attrs = steps,
               .results = {away}});
  Data row = kSums, weights = one, result = up;
  row.dims = result.dims = {13, 1};
  weights.dims = {1, 1};
  c.push_back({.name = "halves up",
               .op = "FULLY_CONNECTED",
               .operands = {row, weights, Absent()},
               .results = {result}});
  c.push_back({.name = "halves away from zero",
               .op = "RESIZE_BILINEAR",
               .operands = {I8({1, 1, 2, 1}, {-1, 0}).Quantized(1, 0), I32({2}, {1, 4})},
               .results = {I8({1, 1, 4, 1}, {-1, -1, 0, 0}).Quantized(1, 0)}});
  // Their quotients in f32 are halves, and in truth a little less.
  c.push_back({.name = "a little less than a half",
               .op = "QUANTIZE",
               .operands = {F32({2}, {0.954901993f, 0.829411805f})},
               .results = {I8({2}, {115, 83}).Quantized(0.00392156886f, -128)},
               .also_f64 = false});
});

}  // namespace
}  // namespace fusebox::conformance
