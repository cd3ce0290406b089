// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();

Data PerAxis(Data d, std::vector<float> scales, std::vector<int64_t> zeros, int32_t axis) {
  d.quant = {std::move(scales), std::move(zeros), axis};
  return d;
}

Data F16(const std::vector<int16_t>& bits) {
  Data d = I16({static_cast<int64_t>(bits.size())}, bits);
  d.dtype = FBX_F16;
  return d;
}

// -8, -7, ... 7 and again, two in a byte, the first in its lower half.
Data I4(std::vector<int64_t> dims) {
  Data d{FBX_I4, std::move(dims), {}};
  for (int64_t i = 0; i < d.count(); i += 2)
    d.bytes.push_back(static_cast<uint8_t>(((i + 8) & 15) | (i + 1 < d.count() ? (i + 9) & 15 : 0) << 4));
  return d;
}

const Suite kQuantize("quantize", [](Cases& c) {
  c.push_back({.name = "i8",
               .op = "QUANTIZE",
               .operands = {F32({9}, {0, 0.25f, -0.25f, 0.75f, 5, 1000, -1000, kInf, kNaN})},
               .results = {I8({9}, {3, 4, 2, 5, 13, 127, -128, 127, 3}).Quantized(0.5f, 3)}});
  c.push_back({.name = "u8",
               .op = "QUANTIZE",
               .operands = {F32({3}, {-1, 0, 1})},
               .results = {U8({3}, {127, 128, 129}).Quantized(1, 128)}});
  c.push_back({.name = "i16",
               .op = "QUANTIZE",
               .operands = {F32({3}, {-40, 0.001f, 40})},
               .results = {I16({3}, {-32768, 1, 32767}).Quantized(0.001f, 0)}});
  c.push_back({.name = "per channel",
               .op = "QUANTIZE",
               .operands = {F32({2, 2, 1}, {1, 1, 2, 2})},
               .results = {PerAxis(I8({2, 2, 1}, {1, 2, 2, 4}), {1, 0.5f}, {0, 0}, 1)}});
  c.push_back({.name = "nothing",
               .op = "QUANTIZE",
               .operands = {F32({0}, {0})},
               .results = {I8({0}, {0}).Quantized(1, 0)}});
  c.push_back({.name = "to no scale",
               .op = "QUANTIZE",
               .operands = {F32({1}, {0})},
               .results = {I8({1}, {0})},
               .refused = "neither a scale"});
  c.push_back({.name = "to i32, of which a float's neighbors are not all integers",
               .op = "QUANTIZE",
               .operands = {F32({4}, {3e9f, -3e9f, 1.5f, kNaN})},
               .results = {I32({4}, {INT32_MAX, INT32_MIN, 3, 0}).Quantized(0.5f, 0)},
               .also_f64 = false});
  c.push_back({.name = "to i64",
               .op = "QUANTIZE",
               .operands = {F32({1}, {0})},
               .results = {I64({1}, {0})},
               .refused = "i64"});
  c.push_back({.name = "from i8",
               .op = "QUANTIZE",
               .operands = {I8({1}, {0}).Quantized(1, 0)},
               .results = {I8({1}, {0}).Quantized(2, 0)}});

  c.push_back({.name = "i8",
               .op = "DEQUANTIZE",
               .operands = {I8({3}, {-128, 3, 127}).Quantized(0.5f, 3)},
               .results = {F32({3}, {-65.5f, 0, 62})},
               .also_f64 = false});
  c.push_back({.name = "u8",
               .op = "DEQUANTIZE",
               .operands = {U8({2}, {0, 255}).Quantized(2, 128)},
               .results = {F32({2}, {-256, 254})},
               .also_f64 = false});
  c.push_back({.name = "i16",
               .op = "DEQUANTIZE",
               .operands = {I16({2}, {-32768, 5}).Quantized(0.25f, 0)},
               .results = {F32({2}, {-8192, 1.25f})},
               .also_f64 = false});
  c.push_back({.name = "per channel",
               .op = "DEQUANTIZE",
               .operands = {PerAxis(I8({2, 2}, {1, 2, 3, 4}), {1, 10}, {0, 1}, 0)},
               .results = {F32({2, 2}, {1, 2, 20, 30})},
               .also_f64 = false});
  c.push_back({.name = "i4",
               .op = "DEQUANTIZE",
               .operands = {I4({17}).Quantized(0.5f, 0)},
               .results = {F32({17}, {-4, -3.5f, -3, -2.5f, -2, -1.5f, -1, -0.5f, 0, 0.5f, 1, 1.5f, 2, 2.5f,
                                      3, 3.5f, -4})},
               .also_f64 = false});
  c.push_back({.name = "i4, channels that end within a byte",
               .op = "DEQUANTIZE",
               .operands = {PerAxis(I4({3, 3}), {1, 10, 100}, {0, 0, 0}, 0)},
               .results = {F32({3, 3}, {-8, -7, -6, -50, -40, -30, -200, -100, 0})},
               .also_f64 = false});
  c.push_back({.name = "i4, channels last",
               .op = "DEQUANTIZE",
               .operands = {PerAxis(I4({2, 3}), {1, 10, 100}, {0, 0, 0}, 1)},
               .results = {F32({2, 3}, {-8, -70, -600, -5, -40, -300})},
               .also_f64 = false});
  c.push_back(
      {.name = "f16",
       .op = "DEQUANTIZE",
       .operands = {F16({0x3c00, static_cast<int16_t>(0xc000), 0x3555, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00,
                         static_cast<int16_t>(0xfc00), 0x7e00, static_cast<int16_t>(0x8000), 0})},
       .results = {F32({12}, {1, -2, 0.333251953125f, 5.9604644775390625e-8f, 6.09755516052246094e-5f,
                              6.103515625e-5f, 65504, kInf, -kInf, kNaN, -0.0f, 0})},
       .also_f64 = false});
  c.push_back(
      {.name = "no scale", .op = "DEQUANTIZE", .operands = {I8({1}, {1})}, .refused = "neither a scale"});
  c.push_back({.name = "i32",
               .op = "DEQUANTIZE",
               .operands = {I32({2}, {INT32_MIN, 3}).Quantized(0.5f, 0)},
               .results = {F32({2}, {-1073741824.0f, 1.5f})},
               .also_f64 = false});
  c.push_back({.name = "i64", .op = "DEQUANTIZE", .operands = {I64({1}, {1})}, .refused = "i64"});
  c.push_back({.name = "channels",
               .op = "DEQUANTIZE",
               .operands = {PerAxis(I8({3}, {1}), {1, 2}, {0, 0}, 0)},
               .refused = "one scale per channel"});
});

// Steps of 0.5 from -2 on, and zero among them.
const Suite kFakeQuant("fake_quant", [](Cases& c) {
  const auto options = [](double least, double most, int bits, bool narrow) {
    return std::vector<Attr>{{"min", least}, {"max", most}, {"num_bits", bits}, {"narrow_range", narrow}};
  };
  const Data x = F32({7}, {-9, -2, -0.3f, 0, 0.2f, 1.3f, 9});
  c.push_back({"rounds to steps",
               "FAKE_QUANT",
               {x},
               options(-2, 5.5, 4, false),
               {F32({7}, {-2, -2, -0.5f, 0, 0, 1.5f, 5.5f})}});
  c.push_back({"leaves out the least step",
               "FAKE_QUANT",
               {x},
               options(-2, 5, 4, true),
               {F32({7}, {-2, -2, -0.5f, 0, 0, 1.5f, 5})}});
  c.push_back({"moves the range to a zero",
               "FAKE_QUANT",
               {x},
               options(-1.8, 5.7, 4, false),
               {F32({7}, {-2, -2, -0.5f, 0, 0, 1.5f, 5.5f})}});
});

}  // namespace
}  // namespace fusebox::conformance
