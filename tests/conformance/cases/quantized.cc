// SPDX-License-Identifier: Apache-2.0
// Quantized elements, rows and windows, of 8 and 16 bits.
#include <limits>

#include "tests/conformance/quantized.h"

namespace fusebox::conformance {
namespace {

template <class F>
std::vector<double> Each(const Data& x, const F& f) {
  std::vector<double> y;
  for (int64_t i = 0; i < x.count(); ++i) y.push_back(f(Real(x, i)));
  return y;
}

// What TFLite computes of bytes: the value, already on the result's scale but for a power of two, and the
// gate (0 to 1 for -3 to 3) are 16 bits each; their product is cut, and rounded when the power of two is
// taken away.
template <class S>
Data HardSwishOfBytes(const Data& x, float scale, int64_t zero) {
  int power = 0, gate_power = 0;
  const double in = double{x.quant.scales[0]} / 128;
  const double factor = std::round(std::frexp(in / scale, &power) * 32768) / 32768;
  const double gate_factor = std::round(std::frexp(in / (3.0 / 32768), &gate_power) * 32768) / 32768;
  std::vector<double> y;
  for (const S stored : As<S>(x)) {
    const double fine = 128.0 * static_cast<double>(stored - x.quant.zero_points[0]);
    const double shifted = std::clamp(fine * std::exp2(gate_power - 1), -32768.0, 32767.0);
    const double gate = std::clamp(2 * std::round(shifted * gate_factor), -32768.0, 32767.0);
    const double product = std::trunc(std::floor((gate + 32768) / 2) * std::round(fine * factor) / 32768);
    y.push_back(std::round(product * std::exp2(power)) * scale);
  }
  return Quantize<S>(x.dims, y, scale, zero);
}

template <class S>
void AddUnary(Cases& c) {
  using K = Kind<S>;
  constexpr float k = K::kStep;
  const int64_t zero = K::kMiddle + 5, low = K::kLow;
  const Data x = RandomQuantized<S>({3, 100}, 1, 0.05f * k, zero);
  const auto add = [&](const char* op, float scale, int64_t to_zero, auto f, std::vector<Attr> attrs = {},
                       double steps = Kind<S>::kWide ? 1 : 0) {
    c.push_back({.name = std::string(K::Name()) + " by value",
                 .op = op,
                 .operands = {x},
                 .attrs = std::move(attrs),
                 .results = {Quantize<S>(x.dims, Each(x, f), scale * k, to_zero)},
                 .atol = steps});
  };
  add("LOGISTIC", 1.0f / 256, low, [](double v) { return 1 / (1 + std::exp(-v)); });
  add("TANH", 1.0f / 128, K::kMiddle, [](double v) { return std::tanh(v); });
  add("RELU", 0.05f, zero, [](double v) { return std::max(v, 0.0); });
  add("RELU6", 0.03f, low, [](double v) { return std::clamp(v, 0.0, 6.0); });
  if (K::kWide) add("HARD_SWISH", 0.05f, zero, [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  else
    for (const float scale : {0.05f, 0.02f})
      c.push_back({std::string(K::Name()) + " by value",
                   "HARD_SWISH",
                   {x},
                   {},
                   {HardSwishOfBytes<S>(x, scale, zero)}});
  add("LEAKY_RELU", 0.06f, zero, [](double v) { return v > 0 ? v : 0.25 * v; }, {{"alpha", 0.25}}, 1);
  add("ABS", 0.05f, low, [](double v) { return std::abs(v); });
  add("ELU", 0.05f, zero, [](double v) { return v > 0 ? v : std::expm1(v); });
  c.push_back({.name = std::string(K::Name()) + " to another scale",
               .op = "QUANTIZE",
               .operands = {x},
               .results = {Quantize<S>(x.dims, Each(x, [](double v) { return v; }), 0.07f * k, 1)},
               .atol = 1});
}

template <class S>
void AddBinary(Cases& c) {
  using K = Kind<S>;
  constexpr float k = K::kStep;
  const std::string type = K::Name();
  const int64_t zero = K::Zero(-7);
  const Data x = RandomQuantized<S>({4, 33}, 2, 0.04f * k, zero),
             y = RandomQuantized<S>({33}, 3, 0.07f * k, K::Zero(2));
  const auto add = [&](const char* op, float scale, auto f) {
    for (const char* activation : {"NONE", "RELU"}) {
      const bool clamps = activation[0] == 'R';
      if (clamps && std::string(op) == "SQUARED_DIFFERENCE") continue;
      std::vector<double> z;
      for (int64_t i = 0; i < x.count(); ++i) z.push_back(f(Real(x, i), Real(y, i % 33)));
      if (clamps) std::ranges::transform(z, z.begin(), [](double v) { return std::max(v, 0.0); });
      c.push_back({.name = type + " " + activation,
                   .op = op,
                   .operands = {x, y},
                   .attrs = {{"fused_activation_function", activation}},
                   .results = {Quantize<S>(x.dims, z, scale * k, zero)},
                   .atol = 1});
    }
  };
  add("ADD", 0.1f, [](double a, double b) { return a + b; });
  add("SUB", 0.1f, [](double a, double b) { return a - b; });
  add("MUL", 0.4f, [](double a, double b) { return a * b; });
  add("SQUARED_DIFFERENCE", 1.0f, [](double a, double b) { return (a - b) * (a - b); });
  const Data same = RandomQuantized<S>({4, 33}, 4, 0.04f * k, zero);
  std::vector<double> most;
  for (int64_t i = 0; i < x.count(); ++i) most.push_back(std::max(Real(x, i), Real(same, i)));
  const Data bigger = Quantize<S>(x.dims, most, 0.04f * k, zero);
  c.push_back({.name = type, .op = "MAXIMUM", .operands = {x, same}, .results = {bigger}});
  c.push_back({.name = type + " of two scales",
               .op = "MAXIMUM",
               .operands = {x, y},
               .results = {x},
               .refused = "a different scale"});
}

// Along dim 1 of [2, 3, 4]. As TFLite computes it: each of three factors is scaled by the upper 16 bits of
// x.scale over the cube root of the result's scale, and so is the product in the end; each is rounded, halves
// up.
template <class S>
Data Products(const Data& x, float scale, int64_t zero) {
  int exponent = 0;
  const double factor = std::frexp(x.quant.scales[0] / std::cbrt(double{scale}), &exponent);
  const double upper = std::round(factor * 32768) / 32768 * std::exp2(exponent);
  std::vector<double> products(8, 1);
  const auto stored = As<S>(x);
  for (size_t i = 0; i < 24; ++i) {
    double& product = products[i / 12 * 4 + i % 4];
    const auto next = static_cast<double>(stored[i] - x.quant.zero_points[0]);
    product = i % 12 < 4 ? next : std::floor(product * next * upper + 0.5);
  }
  for (double& product : products) product = std::floor(product * upper + 0.5) * scale;
  return Quantize<S>({2, 4}, products, scale, zero);
}

template <class S>
void AddRest(Cases& c) {
  using K = Kind<S>;
  constexpr float k = K::kStep;
  const std::string type = K::Name();
  const int64_t low = K::kLow, zero = K::Zero(2);
  const Data x = RandomQuantized<S>({1, 4, 4, 3}, 21, 0.1f * k, zero);
  std::vector<double> pooled, most, mean, sum(3);
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t ch = i % 3, at = (i / 3 / 2 * 2 * 4 + i / 3 % 2 * 2) * 3 + ch;
    const double v[] = {Real(x, at), Real(x, at + 3), Real(x, at + 12), Real(x, at + 15)};
    pooled.push_back((v[0] + v[1] + v[2] + v[3]) / 4);
    most.push_back(*std::max_element(v, v + 4));
    for (const double part : v) sum[static_cast<size_t>(ch)] += part;
  }
  for (const double s : sum) mean.push_back(s / 16);
  const std::vector<Attr> half = {
      {"padding", "VALID"}, {"stride_h", 2}, {"stride_w", 2}, {"filter_height", 2}, {"filter_width", 2}};
  const Data axes = I32({2}, {1, 2});
  c.push_back({type, "AVERAGE_POOL_2D", {x}, half, {Quantize<S>({1, 2, 2, 3}, pooled, 0.1f * k, zero)}, 1});
  c.push_back({type, "MAX_POOL_2D", {x}, half, {Quantize<S>({1, 2, 2, 3}, most, 0.1f * k, zero)}});
  c.push_back({type, "MEAN", {x, axes}, {}, {Quantize<S>({1, 3}, mean, 0.02f * k, low)}});
  const Data few = RandomQuantized<S>({2, 3, 4}, 22, 0.02f * k, zero), along = I32({1}, {1});
  c.push_back({type, "REDUCE_PROD", {few, along}, {}, {Products<S>(few, 0.1f * k, zero)}});
  c.push_back({type, "SUM", {x, axes}, {}, {Quantize<S>({1, 3}, sum, 0.5f * k, zero)}});

  const Data rows = RandomQuantized<S>({3, 10}, 22, 0.05f * k, zero);
  std::vector<double> soft, log_soft, unit;
  for (int64_t r = 0; r < 3; ++r) {
    double powers = 0, squares = 0;
    for (int64_t i = 0; i < 10; ++i) {
      powers += std::exp(Real(rows, r * 10 + i));
      squares += Real(rows, r * 10 + i) * Real(rows, r * 10 + i);
    }
    for (int64_t i = 0; i < 10; ++i) {
      soft.push_back(std::exp(Real(rows, r * 10 + i)) / powers);
      log_soft.push_back(std::log(soft.back()));
      unit.push_back(Real(rows, r * 10 + i) / std::sqrt(squares));
    }
  }
  c.push_back(
      {type, "SOFTMAX", {rows}, {{"beta", 1.0}}, {Quantize<S>({3, 10}, soft, 1.0f / 256 * k, low)}, 1});
  c.push_back({type, "LOG_SOFTMAX", {rows}, {}, {Quantize<S>({3, 10}, log_soft, 16.0f / 256 * k, K::kHigh)}});
  c.push_back(
      {type, "L2_NORMALIZATION", {rows}, {}, {Quantize<S>({3, 10}, unit, 1.0f / 128 * k, K::kMiddle)}, 1});

  const Data alpha = RandomQuantized<S>({3}, 23, 0.01f * k, zero);
  std::vector<double> bent, product;
  for (int64_t i = 0; i < x.count(); ++i)
    bent.push_back(Real(x, i) >= 0 ? Real(x, i) : Real(x, i) * Real(alpha, i % 3));
  c.push_back({type, "PRELU", {x, alpha}, {}, {Quantize<S>(x.dims, bent, 0.12f * k, zero)}, 1});

  const Data a = RandomQuantized<S>({2, 3, 5}, 24, 0.1f * k, zero),
             b = RandomQuantized<S>({5, 4}, 25, 0.05f * k, K::Zero(-18));
  for (int64_t i = 0; i < 24; ++i) {
    double dot = 0;
    for (int64_t p = 0; p < 5; ++p) dot += Real(a, i / 4 * 5 + p) * Real(b, p * 4 + i % 4);
    product.push_back(dot);
  }
  c.push_back({type, "BATCH_MATMUL", {a, b}, {}, {Quantize<S>({2, 3, 4}, product, 1.0f * k, zero)}, 1});

  c.push_back({type,
               "RESIZE_BILINEAR",
               {Values<S>({1, 1, 2, 1}, {S(10), S(20)}).Quantized(1, 3), I32({2}, {1, 4})},
               {},
               {Values<S>({1, 1, 4, 1}, {S(10), S(15), S(20), S(20)}).Quantized(1, 3)},
               1});
}

// Rows of real numbers from stored ones, what is compared across scales, and what only the quantized values
// decide.
void AddMixed(Cases& c) {
  const Data bytes = I8({2, 2}, {-3, 5, 7, 9}).Quantized(0.5f, 1);
  c.push_back({"i8 to f32",
               "EMBEDDING_LOOKUP",
               {I32({3}, {1, 0, 1}), bytes},
               {},
               {F32({3, 2}, {3, 4, -2, 2, 3, 4})},
               0,
               0,
               {},
               {},
               false});
  Data rows = U8({2, 2}, {0, 5, 7, 9});
  rows.quant = {{0.5f, 2}, {1, 3}, 0};
  c.push_back({"u8 with a scale per row",
               "EMBEDDING_LOOKUP",
               {I32({2}, {1, 0}), rows},
               {},
               {F32({2, 2}, {8, 12, -0.5f, 2})},
               0,
               0,
               {},
               {},
               false});
  c.push_back({"i8 as it is",
               "EMBEDDING_LOOKUP",
               {I32({1}, {1}), bytes},
               {},
               {I8({1, 2}, {7, 9}).Quantized(0.5f, 1)}});
  rows.quant.axis = 1;
  c.push_back({.name = "a scale per column",
               .op = "EMBEDDING_LOOKUP",
               .operands = {I32({1}, {1}), rows},
               .results = {F32({1, 2}, {0})},
               .refused = "one per row",
               .also_f64 = false});

  // 1, 2 and 3 beside 2, by other scales.
  const Data x = I8({3}, {2, 4, 6}).Quantized(0.5f, 0), y = I8({1}, {11}).Quantized(0.25f, 3);
  const Data wide = Values<int16_t>({3}, {100, 200, 300}).Quantized(0.01f, 0);
  const Data two = Values<int16_t>({1}, {20}).Quantized(0.1f, 0);
  c.push_back({"two scales", "LESS", {x, y}, {}, {Bool({3}, {true, false, false})}});
  c.push_back({"two scales", "EQUAL", {x, y}, {}, {Bool({3}, {false, true, false})}});
  c.push_back({"two scales", "GREATER_EQUAL", {x, y}, {}, {Bool({3}, {false, true, true})}});
  c.push_back({"two scales of i16", "GREATER", {wide, two}, {}, {Bool({3}, {false, false, true})}});
  c.push_back(
      {"one scale", "NOT_EQUAL", {x, I8({1}, {4}).Quantized(0.5f, 0)}, {}, {Bool({3}, {true, false, true})}});
  c.push_back({.name = "a scale and none",
               .op = "EQUAL",
               .operands = {x, I8({3}, {0})},
               .results = {Bool({3}, {false})},
               .refused = "no scale"});
  c.push_back(
      {"i8", "TOPK_V2", {x, I32({}, {2})}, {}, {I8({2}, {6, 4}).Quantized(0.5f, 0), I32({2}, {2, 1})}});
  c.push_back({.name = "to another scale",
               .op = "TOPK_V2",
               .operands = {x, I32({}, {2})},
               .results = {I8({2}, {0}).Quantized(1, 0), I32({2}, {0})},
               .refused = "a different scale"});

  const Data equal = I8({1, 2}, {5, 5}).Quantized(0.1f, 0);
  c.push_back({"i8 to i16",
               "SOFTMAX",
               {equal},
               {{"beta", 1.0}},
               {Values<int16_t>({1, 2}, {16384}).Quantized(1.0f / 32768, 0)}});
}

const Suite kQuantized("quantized", [](Cases& c) {
  AddUnary<int8_t>(c);
  AddUnary<uint8_t>(c);
  AddUnary<int16_t>(c);
  AddBinary<int8_t>(c);
  AddBinary<uint8_t>(c);
  AddBinary<int16_t>(c);
  AddRest<int8_t>(c);
  AddRest<uint8_t>(c);
  AddRest<int16_t>(c);
  AddMixed(c);
  // A record that a converter left on a float tensor says nothing.
  c.push_back({"f32 with a scale", "EXP", {F32({1}, {0}).Quantized(1, 0)}, {}, {F32({1}, {1})}});
  c.push_back({.name = "a scale of 0",
               .op = "LOGISTIC",
               .operands = {I8({1}, {0}).Quantized(0, 0)},
               .results = {I8({1}, {0}).Quantized(1, 0)},
               .refused = "a scale of 0"});
  c.push_back({.name = "a zero point out of range",
               .op = "LOGISTIC",
               .operands = {I8({1}, {0}).Quantized(1, 200)},
               .results = {I8({1}, {0}).Quantized(1, 0)},
               .refused = "a zero point of 200"});
  // One channel of many is wrong, among those that are looked at together and behind them.
  for (const size_t channel : {0u, 20u, 39u}) {
    const auto wrong = [&](const std::string& name, float scale, int64_t zero, const std::string& why) {
      Data filter = I8({40, 1}, {1});
      filter.quant = {std::vector<float>(40, 0.5f), std::vector<int64_t>(40, 0), 0};
      filter.quant.scales[channel] = scale;
      filter.quant.zero_points[channel] = zero;
      c.push_back({.name = name + " of channel " + std::to_string(channel),
                   .op = "FULLY_CONNECTED",
                   .operands = {F32({1, 1}, {1}), filter},
                   .results = {F32({1, 40}, {1})},
                   .error = why,
                   .also_f64 = false});
    };
    wrong("no scale", 0, 0, "a scale of 0");
    wrong("a negative zero as scale", -0.0f, 0, "a scale of -0");
    wrong("a negative scale", -1, 0, "a scale of -1");
    wrong("an infinite scale", std::numeric_limits<float>::infinity(), 0, "a scale of inf");
    wrong("a scale that is no number", std::numeric_limits<float>::quiet_NaN(), 0, "a scale of nan");
    wrong("a zero point below the least", 1, -129, "a zero point of -129");
    wrong("the least zero point there is", 1, std::numeric_limits<int64_t>::min(), "a zero point of -9223");
    wrong("the largest zero point there is", 1, std::numeric_limits<int64_t>::max(), "a zero point of 9223");
  }
});

}  // namespace
}  // namespace fusebox::conformance
