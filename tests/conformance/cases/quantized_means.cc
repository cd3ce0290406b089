// SPDX-License-Identifier: Apache-2.0
// MEAN of quantized values. TFLite has a form of its own for each of: one scale, two scales, images whose
// dims are kept.
#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

void AddMean(Cases& c, std::string name, const Data& x, const Data& axes, const Data& y, bool keep = false) {
  c.push_back({.name = std::move(name),
               .op = "MEAN",
               .operands = {x, axes},
               .attrs = {{"keep_dims", keep}},
               .results = {y}});
}

const Suite kQuantizedMeans("quantized means", [](Cases& c) {
  const Data along = I32({1}, {1}), image = I32({2}, {1, 2}), swapped = I32({2}, {2, 1});
  const auto i8 = [](Dims dims, const std::vector<int8_t>& v) { return I8(std::move(dims), v); };
  const std::vector<int8_t> halves = {3, 4, -3, -4};  // 3.5 and -3.5

  AddMean(c, "one scale: the quotient of what is stored is cut", i8({2, 2}, halves).Quantized(0.5f, 10),
          along, i8({2}, {3, -3}).Quantized(0.5f, 10));
  AddMean(c, "one scale: cut in 16 bits too", I16({2, 2}, {3, 4, -3, -4}).Quantized(0.5f, 0), along,
          I16({2}, {3, -3}).Quantized(0.5f, 0));
  AddMean(c, "one scale: images that lose their dims are cut", i8({2, 1, 2, 1}, halves).Quantized(0.5f, 10),
          image, i8({2, 1}, {3, -3}).Quantized(0.5f, 10));
  // Less the zero point -6.5 and -13.5, which are -7 and -14.
  AddMean(c, "images: halves away from the zero point", i8({2, 1, 2, 1}, halves).Quantized(0.5f, 10), image,
          i8({2, 1, 1, 1}, {3, -4}).Quantized(0.5f, 10), true);
  AddMean(c, "images: axes in the other order", i8({2, 1, 2, 1}, halves).Quantized(0.5f, 0), swapped,
          i8({2, 1, 1, 1}, {4, -4}).Quantized(0.5f, 0), true);
  AddMean(c, "images: an axis counted from the back is cut", i8({2, 1, 2, 1}, halves).Quantized(0.5f, 0),
          I32({2}, {1, -2}), i8({2, 1, 1, 1}, {3, -3}).Quantized(0.5f, 0), true);
  // 7 * 0.5 is 3.5, which becomes 4 before it is divided by 2; 6 * 0.5 / 2 is 1.5.
  AddMean(c, "images of two scales: scaled, rounded, divided, rounded",
          i8({3, 1, 2, 1}, {3, 4, 3, 3, -3, -3}).Quantized(0.5f, 0), image,
          i8({3, 1, 1, 1}, {2, 2, -2}).Quantized(1, 0), true);
  AddMean(c, "images of two scales, i16", I16({2, 1, 2, 1}, {3, 4, -3, -3}).Quantized(0.5f, 0), image,
          I16({2, 1, 1, 1}, {2, -2}).Quantized(1, 0), true);
  // 4 * 0.25 is 1; the zero point's 0.5 becomes 1. In one rounding 10.5 would be 11.
  AddMean(c, "images of two scales, u8: the zero point is rounded alone",
          U8({1, 1, 2, 1}, {2, 2}).Quantized(0.5f, 1), image, U8({1, 1, 1, 1}, {10}).Quantized(1, 10), true);
  AddMean(c, "two scales: halves away from zero",
          i8({4, 2}, {3, 3, -3, -3, 3, 4, 127, 127}).Quantized(0.5f, 0), along,
          i8({4}, {2, -2, 2, 64}).Quantized(1, 0));
  AddMean(c, "two scales: saturated", i8({2, 2}, {127, 127, -128, -128}).Quantized(2, 0), along,
          i8({2}, {127, -128}).Quantized(1, 0));

  AddMean(c, "i8 without a scale", i8({2, 2}, halves), along, i8({2}, {3, -3}));
  AddMean(c, "u8 without a scale", U8({2, 2}, {255, 254, 3, 4}), along, U8({2}, {254, 3}));
  AddMean(c, "i16 without a scale", I16({2, 2}, {32767, 32766, -3, -4}), I32({1}, {0}),
          I16({2}, {16382, 16381}));
  AddMean(c, "images without a scale", i8({2, 1, 2, 1}, halves), image, i8({2, 1, 1, 1}, {3, -3}), true);
  c.push_back({.name = "without a scale to a result with one",
               .op = "MEAN",
               .operands = {i8({2}, {1, 2}), I32({1}, {0})},
               .results = {i8({}, {1}).Quantized(1, 0)},
               .refused = "without a scale"});
  for (const char* op : {"SUM", "REDUCE_PROD"})
    c.push_back(
        {.name = "bytes without a scale wrap",
         .op = op,
         .operands = {i8({2, 2}, {100, 2, 100, 3}), I32({1}, {0})},
         .results = {i8({2}, op[0] == 'S' ? std::vector<int8_t>{-56, 5} : std::vector<int8_t>{16, 6})}});
});

}  // namespace
}  // namespace fusebox::conformance
