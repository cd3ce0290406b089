// SPDX-License-Identifier: Apache-2.0
// Quantised bytes. What is expected is worked out in double from the real values that the stored ones stand for; kernels
// scale by fixed point in two roundings, as stock TFLite does, which may be a step off.
#include <algorithm>
#include <cmath>

#include "tests/conformance/case.h"

namespace fusebox::conformance {
namespace {

template <class S>
Data Stored(Dims dims, uint32_t seed, float scale, int64_t zero) {
  const double low = std::is_signed_v<S> ? -128 : 0;
  return Random<S>(std::move(dims), seed, low, low + 255).Quantised(scale, zero);
}

double Scale(const Data& d, int64_t channel) {
  return d.quant.scales[d.quant.scales.size() > 1 ? static_cast<size_t>(channel) : 0];
}

// Of element i, in double.
double Real(const Data& d, int64_t i, int64_t channel = 0) {
  const auto at = static_cast<size_t>(i);
  const int stored = d.dtype == FBX_U8 ? d.bytes[at] : static_cast<int8_t>(d.bytes[at]);
  const auto zero = d.quant.zero_points[d.quant.zero_points.size() > 1 ? static_cast<size_t>(channel) : 0];
  return Scale(d, channel) * static_cast<double>(stored - zero);
}

// Quantised to the type, scale and zero point of `like`.
Data ToStored(Dims dims, const std::vector<double>& real, fbx_dtype dtype, float scale, int64_t zero) {
  Data d{dtype, std::move(dims), {}};
  const double low = dtype == FBX_U8 ? 0 : -128;
  for (const double x : real) {
    const double q = std::clamp(std::round(x / scale) + static_cast<double>(zero), low, low + 255);
    d.bytes.push_back(static_cast<uint8_t>(static_cast<int>(q)));
  }
  return d.Quantised(scale, zero);
}

template <class F>
std::vector<double> Each(const Data& x, const F& f) {
  std::vector<double> y;
  for (int64_t i = 0; i < x.count(); ++i) y.push_back(f(Real(x, i)));
  return y;
}

template <class S>
void AddUnary(Cases& c) {
  const std::string type = std::is_signed_v<S> ? "i8 " : "u8 ";
  const fbx_dtype dtype = dtype_of<S>;
  const int64_t zero = std::is_signed_v<S> ? 5 : 133;
  const Data x = Stored<S>({3, 100}, 1, 0.05f, zero);
  const auto add = [&](const char* op, float scale, int64_t to_zero, auto f, std::vector<Attr> attrs = {},
                       double steps = 0) {
    c.push_back({.name = type + "by table",
                 .op = op,
                 .operands = {x},
                 .attrs = std::move(attrs),
                 .results = {ToStored(x.dims, Each(x, f), dtype, scale, to_zero)},
                 .atol = steps});
  };
  const int64_t low = std::is_signed_v<S> ? -128 : 0;
  add("LOGISTIC", 1.0f / 256, low, [](double v) { return 1 / (1 + std::exp(-v)); });
  add("TANH", 1.0f / 128, low + 128, [](double v) { return std::tanh(v); });
  add("RELU", 0.05f, zero, [](double v) { return std::max(v, 0.0); });
  add("RELU6", 0.03f, low, [](double v) { return std::clamp(v, 0.0, 6.0); });
  add("HARD_SWISH", 0.05f, zero, [](double v) { return v * std::clamp(v + 3, 0.0, 6.0) / 6; });
  add("LEAKY_RELU", 0.06f, zero, [](double v) { return v > 0 ? v : 0.25 * v; }, {{"alpha", 0.25}}, 1);
  add("ABS", 0.05f, low, [](double v) { return std::abs(v); });
  add("ELU", 0.05f, zero, [](double v) { return v > 0 ? v : std::expm1(v); });
  c.push_back({.name = type + "to another scale",
               .op = "QUANTIZE",
               .operands = {x},
               .results = {ToStored(x.dims, Each(x, [](double v) { return v; }), dtype, 0.07f, 1)},
               .atol = 1});
}

template <class S>
void AddBinary(Cases& c) {
  const std::string type = std::is_signed_v<S> ? "i8" : "u8";
  const int64_t zero = std::is_signed_v<S> ? -7 : 120;
  const Data x = Stored<S>({4, 33}, 2, 0.04f, zero), y = Stored<S>({33}, 3, 0.07f, zero + 9);
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
                   .results = {ToStored(x.dims, z, dtype_of<S>, scale, zero)},
                   .atol = 1});
    }
  };
  add("ADD", 0.1f, [](double a, double b) { return a + b; });
  add("SUB", 0.1f, [](double a, double b) { return a - b; });
  add("MUL", 0.4f, [](double a, double b) { return a * b; });
  add("SQUARED_DIFFERENCE", 1.0f, [](double a, double b) { return (a - b) * (a - b); });
  Data bigger = x, same = Stored<S>({4, 33}, 4, 0.04f, zero);
  for (size_t i = 0; i < bigger.bytes.size(); ++i)
    bigger.bytes[i] = static_cast<uint8_t>(std::max(As<S>(x)[i], As<S>(same)[i]));
  c.push_back({.name = type, .op = "MAXIMUM", .operands = {x, same}, .results = {bigger}});
  c.push_back({.name = type + " of two scales",
               .op = "MAXIMUM",
               .operands = {x, y},
               .results = {x},
               .refused = "another scale"});
}

// CONV_2D with stride 1 and VALID, [1, h, w, c] by [o, kh, kw, c].
std::vector<double> Convolved(const Data& x, const Data& w, const std::vector<double>& bias) {
  const int64_t height = x.dims[1], width = x.dims[2], depth = x.dims[3];
  const int64_t outs = w.dims[0], kh = w.dims[1], kw = w.dims[2];
  std::vector<double> y;
  for (int64_t oy = 0; oy + kh <= height; ++oy) {
    for (int64_t ox = 0; ox + kw <= width; ++ox) {
      for (int64_t o = 0; o < outs; ++o) {
        double sum = bias[static_cast<size_t>(o)];
        for (int64_t k = 0; k < kh * kw * depth; ++k) {
          const int64_t ky = k / depth / kw, kx = k / depth % kw;
          sum += Real(x, ((oy + ky) * width + ox + kx) * depth + k % depth) *
                 Real(w, o * kh * kw * depth + k, o);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// i32 with the scales of the products, and its real values.
std::vector<double> RealBias(const Data& bias, const Data& x, const Data& w) {
  std::vector<double> real;
  for (int64_t o = 0; o < bias.count(); ++o)
    real.push_back(As<int32_t>(bias)[static_cast<size_t>(o)] * Scale(x, 0) * Scale(w, o));
  return real;
}

template <class S>
void AddProducts(Cases& c, bool per_channel) {
  const std::string name =
      std::string(std::is_signed_v<S> ? "i8" : "u8") + (per_channel ? ", a scale per channel" : "");
  const int64_t zero = std::is_signed_v<S> ? 3 : 125;
  const fbx_dtype dtype = dtype_of<S>;
  const auto weights = [&](Dims dims, int32_t axis) {
    Data w = Stored<S>(dims, 12, 0.02f, per_channel ? 0 : zero);
    if (per_channel) {
      const auto channels = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
      w.quant = {{}, std::vector<int64_t>(channels, 0), axis};
      for (size_t i = 0; i < channels; ++i) w.quant.scales.push_back(0.01f + 0.003f * static_cast<float>(i));
    }
    return w;
  };
  const Data bias = I32({5}, {1000, -2000, 0, 300, 4});
  const std::vector<Attr> valid = {{"padding", "VALID"}, {"stride_h", 1}, {"stride_w", 1}};
  for (const int64_t k : {1, 3}) {
    const Data x = Stored<S>({1, 6, 7, 9}, 11, 0.1f, zero), w = weights({5, k, k, 9}, 0);
    c.push_back({.name = name + (k == 1 ? ", pixels" : ", patches"),
                 .op = "CONV_2D",
                 .operands = {x, w, bias},
                 .attrs = valid,
                 .results = {ToStored({1, 7 - k, 8 - k, 5}, Convolved(x, w, RealBias(bias, x, w)), dtype,
                                      0.5f, zero)},
                 .atol = 1});
  }
  {
    const Data x = Stored<S>({3, 70}, 13, 0.1f, zero), w = weights({5, 70}, 0);
    std::vector<double> y;
    const std::vector<double> b = RealBias(bias, x, w);
    for (int64_t i = 0; i < 15; ++i) {
      double sum = b[static_cast<size_t>(i % 5)];
      for (int64_t p = 0; p < 70; ++p) sum += Real(x, i / 5 * 70 + p) * Real(w, i % 5 * 70 + p, i % 5);
      y.push_back(std::max(sum, 0.0));
    }
    c.push_back({.name = name,
                 .op = "FULLY_CONNECTED",
                 .operands = {x, w, bias},
                 .attrs = {{"fused_activation_function", "RELU"}},
                 .results = {ToStored({3, 5}, y, dtype, 0.3f, zero)},
                 .atol = 1});
  }
  {
    const Data x = Stored<S>({1, 5, 4, 5}, 14, 0.1f, zero), w = weights({1, 3, 3, 5}, 3);
    const std::vector<double> b = RealBias(bias, x, w);
    std::vector<double> y;
    for (int64_t i = 0; i < 5 * 4 * 5; ++i) {  // SAME
      const int64_t ch = i % 5, ox = i / 5 % 4, oy = i / 20;
      double sum = b[static_cast<size_t>(ch)];
      for (int64_t k = 0; k < 9; ++k) {
        const int64_t iy = oy + k / 3 - 1, ix = ox + k % 3 - 1;
        if (iy >= 0 && iy < 5 && ix >= 0 && ix < 4)
          sum += Real(x, (iy * 4 + ix) * 5 + ch) * Real(w, k * 5 + ch, ch);
      }
      y.push_back(sum);
    }
    c.push_back({.name = name,
                 .op = "DEPTHWISE_CONV_2D",
                 .operands = {x, w, bias},
                 .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}, {"depth_multiplier", 1}},
                 .results = {ToStored({1, 5, 4, 5}, y, dtype, 0.2f, zero)},
                 .atol = 1});
  }
  {
    // Taps that do not overlap: a pixel of the result is one product.
    const Data x = Stored<S>({1, 2, 3, 4}, 15, 0.1f, zero), w = weights({5, 2, 2, 4}, 0);
    const std::vector<double> b = RealBias(bias, x, w);
    std::vector<double> y;
    for (int64_t i = 0; i < 4 * 6 * 5; ++i) {
      const int64_t o = i % 5, ox = i / 5 % 6, oy = i / 30;
      double sum = b[static_cast<size_t>(o)];
      for (int64_t p = 0; p < 4; ++p)
        sum += Real(x, (oy / 2 * 3 + ox / 2) * 4 + p) * Real(w, ((o * 2 + oy % 2) * 2 + ox % 2) * 4 + p, o);
      y.push_back(sum);
    }
    c.push_back({.name = name,
                 .op = "TRANSPOSE_CONV",
                 .operands = {I32({4}, {1, 4, 6, 5}), w, x, bias},
                 .attrs = {{"padding", "VALID"}, {"stride_h", 2}, {"stride_w", 2}},
                 .results = {ToStored({1, 4, 6, 5}, y, dtype, 0.2f, zero)},
                 .atol = 1});
  }
}

template <class S>
void AddRest(Cases& c) {
  const std::string type = std::is_signed_v<S> ? "i8" : "u8";
  const int64_t low = std::is_signed_v<S> ? -128 : 0, zero = low + 130;
  const fbx_dtype dtype = dtype_of<S>;
  const Data x = Stored<S>({1, 4, 4, 3}, 21, 0.1f, zero);
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
  c.push_back({type, "AVERAGE_POOL_2D", {x}, half, {ToStored({1, 2, 2, 3}, pooled, dtype, 0.1f, zero)}, 1});
  c.push_back({type, "MAX_POOL_2D", {x}, half, {ToStored({1, 2, 2, 3}, most, dtype, 0.1f, zero)}});
  c.push_back({type, "MEAN", {x, axes}, {}, {ToStored({1, 3}, mean, dtype, 0.02f, low)}});
  c.push_back({type, "SUM", {x, axes}, {}, {ToStored({1, 3}, sum, dtype, 0.5f, zero)}});

  const Data rows = Stored<S>({3, 10}, 22, 0.05f, zero);
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
      {type, "SOFTMAX", {rows}, {{"beta", 1.0}}, {ToStored({3, 10}, soft, dtype, 1.0f / 256, low)}, 1});
  c.push_back(
      {type, "LOG_SOFTMAX", {rows}, {}, {ToStored({3, 10}, log_soft, dtype, 16.0f / 256, low + 255)}});
  c.push_back(
      {type, "L2_NORMALIZATION", {rows}, {}, {ToStored({3, 10}, unit, dtype, 1.0f / 128, low + 128)}, 1});

  const Data alpha = Stored<S>({3}, 23, 0.01f, zero);
  std::vector<double> bent, product;
  for (int64_t i = 0; i < x.count(); ++i)
    bent.push_back(Real(x, i) >= 0 ? Real(x, i) : Real(x, i) * Real(alpha, i % 3));
  c.push_back({type, "PRELU", {x, alpha}, {}, {ToStored(x.dims, bent, dtype, 0.12f, zero)}, 1});

  const Data a = Stored<S>({2, 3, 5}, 24, 0.1f, zero), b = Stored<S>({5, 4}, 25, 0.05f, zero - 20);
  for (int64_t i = 0; i < 24; ++i) {
    double dot = 0;
    for (int64_t p = 0; p < 5; ++p) dot += Real(a, i / 4 * 5 + p) * Real(b, p * 4 + i % 4);
    product.push_back(dot);
  }
  c.push_back({type, "BATCH_MATMUL", {a, b}, {}, {ToStored({2, 3, 4}, product, dtype, 1.0f, zero)}, 1});

  c.push_back({type,
               "RESIZE_BILINEAR",
               {Values<S>({1, 1, 2, 1}, {S(10), S(20)}).Quantised(1, 3), I32({2}, {1, 4})},
               {},
               {Values<S>({1, 1, 4, 1}, {S(10), S(15), S(20), S(20)}).Quantised(1, 3)},
               1});
}

// The weights of hybrids are exact here, and so is the input once it is quantised: 127 stands for 2.
void AddHybrids(Cases& c) {
  const auto input = [](Dims dims) {
    std::vector<float> v;
    int64_t count = 1;
    for (const int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) v.push_back(2.0f / 127.0f * static_cast<float>((i * 37) % 255 - 127));
    return F32(std::move(dims), v);
  };
  const auto add = [&](const char* name, Dims x_dims, Data w, std::vector<int> values) {
    const Data x = input(x_dims), bias = F32({2}, {0.5f, -1});
    std::vector<float> y;
    const int64_t depth = x_dims[1];
    for (int64_t i = 0; i < x_dims[0] * 2; ++i) {
      double sum = As<float>(bias)[static_cast<size_t>(i % 2)];
      for (int64_t p = 0; p < depth; ++p)
        sum += As<float>(x)[static_cast<size_t>(i / 2 * depth + p)] * Scale(w, i % 2) *
               values[static_cast<size_t>(i % 2 * depth + p)];
      y.push_back(static_cast<float>(sum));
    }
    c.push_back({.name = name,
                 .op = "FULLY_CONNECTED",
                 .operands = {x, w, bias},
                 .results = {F32({x_dims[0], 2}, y)},
                 .atol = 1e-4,
                 .rtol = 1e-4,
                 .also_f64 = false});
  };
  std::vector<int8_t> bytes;
  std::vector<int> wide;
  for (int i = 0; i < 510; ++i)
    bytes.push_back(static_cast<int8_t>(i * 13 % 200 - 100)), wide.push_back(bytes.back());
  Data w = I8({2, 255}, bytes);
  w.quant = {{0.5f, 0.25f}, {0, 0}, 0};
  add("hybrid i8", {1, 255}, w, wide);
  Data nibbles{FBX_I4, {2, 255}, {}};
  std::vector<int> small;
  for (int i = 0; i < 510; ++i) small.push_back(i * 5 % 16 - 8);
  for (size_t i = 0; i < 510; i += 2)
    nibbles.bytes.push_back(static_cast<uint8_t>((small[i] & 15) | (small[i + 1] & 15) << 4));
  add("hybrid i4", {1, 255}, nibbles.Quantised(0.5f, 0), small);

  const Data pixels = F32({1, 1, 2, 2}, {0, 255, 51, 102});  // with a zero point: whole steps
  c.push_back({.name = "hybrid",
               .op = "CONV_2D",
               .operands = {pixels, I8({1, 1, 1, 2}, {2, -1}).Quantised(0.5f, 0), F32({1}, {1})},
               .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}},
               .results = {F32({1, 1, 2, 1}, {-126.5f, 1})},
               .atol = 1.5,
               .also_f64 = false});
  Data each = I8({1, 1, 1, 2}, {2, -1});
  each.quant = {{0.5f, 1}, {0, 0}, 3};
  c.push_back({.name = "hybrid",
               .op = "DEPTHWISE_CONV_2D",
               .operands = {pixels, each, F32({2}, {1, 0})},
               .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}, {"depth_multiplier", 1}},
               .results = {F32({1, 1, 2, 2}, {1, -255, 52, -102})},
               .atol = 1e-3,
               .also_f64 = false});
}

const Suite kQuantised("quantised", [](Cases& c) {
  AddUnary<int8_t>(c);
  AddUnary<uint8_t>(c);
  AddBinary<int8_t>(c);
  AddBinary<uint8_t>(c);
  AddProducts<int8_t>(c, false);
  AddProducts<int8_t>(c, true);
  AddProducts<uint8_t>(c, false);
  AddRest<int8_t>(c);
  AddRest<uint8_t>(c);
  AddHybrids(c);
  // A record that a converter left on a float tensor says nothing.
  c.push_back({"f32 with a scale", "EXP", {F32({1}, {0}).Quantised(1, 0)}, {}, {F32({1}, {1})}});
  c.push_back({.name = "a scale of 0",
               .op = "LOGISTIC",
               .operands = {I8({1}, {0}).Quantised(0, 0)},
               .results = {I8({1}, {0}).Quantised(1, 0)},
               .refused = "a scale of 0"});
  c.push_back({.name = "a zero point out of range",
               .op = "LOGISTIC",
               .operands = {I8({1}, {0}).Quantised(1, 200)},
               .results = {I8({1}, {0}).Quantised(1, 0)},
               .refused = "a zero point of 200"});
});

}  // namespace
}  // namespace fusebox::conformance
