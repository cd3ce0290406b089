// SPDX-License-Identifier: Apache-2.0
// Quantized convolutions and matrix products, of 8 and 16 bits and hybrids.
#include "tests/conformance/quantized.h"

namespace fusebox::conformance {
namespace {

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

// The real values of i32 or i64 with the scales of the products.
std::vector<double> RealBias(const Data& bias, const Data& x, const Data& w) {
  std::vector<double> real;
  for (int64_t o = 0; o < bias.count(); ++o)
    real.push_back((bias.dtype == FBX_I64 ? static_cast<double>(As<int64_t>(bias)[static_cast<size_t>(o)])
                                          : As<int32_t>(bias)[static_cast<size_t>(o)]) *
                   Scale(x, 0) * Scale(w, o));
  return real;
}

template <class S>
void AddProducts(Cases& c, bool per_channel) {
  using K = Kind<S>;
  using W = std::conditional_t<K::kWide, int8_t, S>;
  constexpr float k = K::kStep;
  const std::string name = std::string(K::Name()) + (per_channel ? ", a scale per channel" : "");
  const int64_t zero = K::Zero(3);
  const auto weights = [&](Dims dims, int32_t axis) {
    Data w = RandomQuantized<W>(dims, 12, 0.02f, per_channel ? 0 : Kind<W>::Zero(3));
    if (per_channel) {
      const auto channels = static_cast<size_t>(dims[static_cast<size_t>(axis)]);
      w.quant = {{}, std::vector<int64_t>(channels, 0), axis};
      for (size_t i = 0; i < channels; ++i) w.quant.scales.push_back(0.01f + 0.003f * static_cast<float>(i));
    }
    return w;
  };
  const Data bias =
      K::kWide ? I64({5}, {256000, -512000, 0, 76800, 1024}) : I32({5}, {1000, -2000, 0, 300, 4});
  const std::vector<Attr> valid = {{"padding", "VALID"}, {"stride_h", 1}, {"stride_w", 1}};
  for (const int64_t f : {1, 3}) {
    const Data x = RandomQuantized<S>({1, 6, 7, 9}, 11, 0.1f * k, zero), w = weights({5, f, f, 9}, 0);
    c.push_back({.name = name + (f == 1 ? ", pixels" : ", patches"),
                 .op = "CONV_2D",
                 .operands = {x, w, bias},
                 .attrs = valid,
                 .results = {Quantize<S>({1, 7 - f, 8 - f, 5}, Convolved(x, w, RealBias(bias, x, w)),
                                         0.5f * k, zero)},
                 .atol = 1});
  }
  for (const int64_t rows : {3, 1}) {
    const Data x = RandomQuantized<S>({rows, 70}, 13, 0.1f * k, zero), w = weights({5, 70}, 0);
    std::vector<double> y;
    const std::vector<double> b = RealBias(bias, x, w);
    for (int64_t i = 0; i < rows * 5; ++i) {
      double sum = b[static_cast<size_t>(i % 5)];
      for (int64_t p = 0; p < 70; ++p) sum += Real(x, i / 5 * 70 + p) * Real(w, i % 5 * 70 + p, i % 5);
      y.push_back(std::max(sum, 0.0));
    }
    c.push_back({.name = name,
                 .op = "FULLY_CONNECTED",
                 .operands = {x, w, bias},
                 .attrs = {{"fused_activation_function", "RELU"}},
                 .results = {Quantize<S>({rows, 5}, y, 0.3f * k, zero)},
                 .atol = 1});
    if (rows > 1) continue;
    Data pixel = x, taps = w;
    pixel.dims = {1, 1, 1, 70}, taps.dims = {5, 1, 1, 70};
    c.push_back({.name = name,
                 .op = "CONV_2D",
                 .operands = {pixel, taps, bias},
                 .attrs = {{"padding", "SAME"},
                           {"stride_h", 1},
                           {"stride_w", 1},
                           {"fused_activation_function", "RELU"}},
                 .results = {Quantize<S>({1, 1, 1, 5}, y, 0.3f * k, zero)},
                 .atol = 1});
  }
  {
    const Data x = RandomQuantized<S>({1, 5, 4, 5}, 14, 0.1f * k, zero), w = weights({1, 3, 3, 5}, 3);
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
                 .results = {Quantize<S>({1, 5, 4, 5}, y, 0.2f * k, zero)},
                 .atol = 1});
  }
  {
    // Taps that do not overlap: a pixel of the result is one product.
    const Data x = RandomQuantized<S>({1, 2, 3, 4}, 15, 0.1f * k, zero), w = weights({5, 2, 2, 4}, 0);
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
                 .results = {Quantize<S>({1, 4, 6, 5}, y, 0.2f * k, zero)},
                 .atol = 1});
  }
}

// The weights of hybrids are exact here, and so is the input once it is quantized: 127 stands for 2.
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
  add("hybrid i4", {1, 255}, nibbles.Quantized(0.5f, 0), small);

  const Data pixels = F32({1, 1, 2, 2}, {0, 255, 51, 102});  // with a zero point: whole steps
  c.push_back({.name = "hybrid",
               .op = "CONV_2D",
               .operands = {pixels, I8({1, 1, 1, 2}, {2, -1}).Quantized(0.5f, 0), F32({1}, {1})},
               .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}},
               .results = {F32({1, 1, 2, 1}, {-126.5f, 1})},
               .atol = 1.5,
               .also_f64 = false});
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const bool asymmetric : {false, true})
    c.push_back(
        {.name = "hybrid, NaN in one row",
         .op = "FULLY_CONNECTED",
         .operands = {F32({2, 2}, {1, kNaN, 2, 1}), I8({1, 2}, {127, 0}).Quantized(1, 0), F32({1}, {1})},
         .attrs = {{"asymmetric_quantize_inputs", asymmetric}},
         .results = {F32({2, 1}, {kNaN, 255})},
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

// Two images of whole steps once quantized, each with a zero point of its own.
void AddHybridImages(Cases& c) {
  constexpr int64_t kImage = 4 * 5 * 3, kLeast[] = {0, -100};
  std::vector<float> x, y;
  for (int64_t i = 0; i < 2 * kImage; ++i)
    x.push_back(static_cast<float>(i % kImage < 2 ? 255 * (i % kImage) : i * 41 % 256) + kLeast[i / kImage]);
  std::vector<int8_t> w;
  for (int i = 0; i < 27; ++i) w.push_back(static_cast<int8_t>(i * 5 % 19 - 9));
  for (int64_t i = 0; i < 2 * kImage; ++i) {
    const int64_t ch = i % 3, ox = i / 3 % 5, oy = i / 15 % 4;
    float sum = 0;
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t iy = oy + k / 3 - 1, ix = ox + k % 3 - 1;
      if (iy >= 0 && iy < 4 && ix >= 0 && ix < 5)
        sum += x[static_cast<size_t>(i / kImage * kImage + (iy * 5 + ix) * 3 + ch)] *
               w[static_cast<size_t>(k * 3 + ch)];
    }
    y.push_back(sum);
  }
  Data filter = I8({1, 3, 3, 3}, w);
  filter.quant = {{1, 1, 1}, {0, 0, 0}, 3};
  c.push_back({.name = "hybrid, two images",
               .op = "DEPTHWISE_CONV_2D",
               .operands = {F32({2, 4, 5, 3}, x), filter, F32({3}, {0})},
               .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}, {"depth_multiplier", 1}},
               .results = {F32({2, 4, 5, 3}, y)},
               .atol = 1e-2,
               .also_f64 = false});
}

// [2, 3, 5] by [5, 4] of i8 with a scale for each of the 4, both as they are and swapped.
void AddMatMuls(Cases& c) {
  const Data rows = RandomQuantized<int16_t>({2, 3, 5}, 31, 0.001f, 0);
  Data w = RandomQuantized<int8_t>({5, 4}, 32, 0, 0), swapped = RandomQuantized<int8_t>({4, 5}, 0, 0, 0);
  for (size_t i = 0; i < 20; ++i) swapped.bytes[i % 4 * 5 + i / 4] = w.bytes[i];
  w.quant = {{0.01f, 0.02f, 0.03f, 0.04f}, {0, 0, 0, 0}, 1};
  swapped.quant = w.quant;
  swapped.quant.axis = 0;
  const auto product = [&](const Data& x) {
    std::vector<double> y;
    for (int64_t i = 0; i < 24; ++i) {
      double sum = 0;
      for (int64_t p = 0; p < 5; ++p) {
        const int64_t at = i / 4 * 5 + p;
        sum += (x.dtype == FBX_F32 ? As<float>(x)[static_cast<size_t>(at)] : Real(x, at)) *
               Real(w, p * 4 + i % 4, i % 4);
      }
      y.push_back(sum);
    }
    return y;
  };
  const Data y = Quantize<int16_t>({2, 3, 4}, product(rows), 0.01f, 0);
  c.push_back({"i16 by i8 channels", "BATCH_MATMUL", {rows, w}, {}, {y}, 1});
  c.push_back({"i16 by i8 channels, swapped", "BATCH_MATMUL", {rows, swapped}, {{"adj_y", true}}, {y}, 1});
  c.push_back({"nothing",
               "BATCH_MATMUL",
               {RandomQuantized<int16_t>({0, 5}, 1, 1, 0), w},
               {},
               {Values<int16_t>({0, 4}, {0}).Quantized(1, 0)}});

  // Whole steps once quantized: 1 is the scale of the first three rows, each with a 127 in it, and 2 of the
  // others.
  std::vector<float> floats, columns(30);
  for (int i = 0; i < 30; ++i)
    floats.push_back((i < 15 ? 1.0f : 2.0f) * static_cast<float>(i % 5 == 2 ? 127 : i * 29 % 201 - 100));
  for (size_t i = 0; i < 30; ++i) columns[i / 15 * 15 + i % 5 * 3 + i / 5 % 3] = floats[i];
  const Data x = F32({2, 3, 5}, floats);
  const std::vector<double> sums = product(x);
  const Data z = F32({2, 3, 4}, {sums.begin(), sums.end()});
  const auto hybrid = [&](const char* name, Data a, Data b, std::vector<Attr> attrs) {
    c.push_back({name, "BATCH_MATMUL", {a, b}, attrs, {z}, 1e-3, 1e-5, {}, {}, false});
  };
  hybrid("hybrid", x, w, {});
  hybrid("hybrid, the right swapped", x, swapped, {{"adj_y", true}});
  hybrid("hybrid, the left swapped", F32({2, 5, 3}, columns), w, {{"adj_x", true}});
}

// A sum of 475510238 at the scales 0.049 * 0.0025 / 500 is 116.5000027; where the scales are multiplied as
// floats, 116.4999959.
void AddScales(Cases& c) {
  constexpr float kInput = 0.049f, kWeights = 0.0025f, kResult = 500;
  const Data sum = I32({1}, {475510238}), size = I32({4}, {1, 1, 1, 1});
  const auto add = [&](std::string name, const char* op, std::vector<Data> operands, const Data& result) {
    std::vector<Attr> attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}};
    if (std::string(op) == "FULLY_CONNECTED") attrs.clear();
    operands.push_back(sum);
    c.push_back({.name = name + ", one scale of weights",
                 .op = op,
                 .operands = std::move(operands),
                 .attrs = std::move(attrs),
                 .results = {result.Quantized(kResult, 0)}});
  };
  const Dims one = {1, 1, 1, 1};
  const Data x = I8(one, {0}).Quantized(kInput, 0), w = I8(one, {1}).Quantized(kWeights, 0);
  add("i8", "CONV_2D", {x, w}, I8(one, {117}));
  add("i8", "DEPTHWISE_CONV_2D", {x, w}, I8(one, {117}));
  add("i8", "TRANSPOSE_CONV", {size, w, x}, I8(one, {117}));
  const Data unsigned_x = U8(one, {0}).Quantized(kInput, 0), unsigned_w = U8(one, {1}).Quantized(kWeights, 0);
  add("u8", "CONV_2D", {unsigned_x, unsigned_w}, U8(one, {116}));
  add("i8", "FULLY_CONNECTED", {I8({1, 1}, {0}).Quantized(kInput, 0), I8({1, 1}, {1}).Quantized(kWeights, 0)},
      I8({1, 1}, {116}));
}

void AddRefusals(Cases& c) {
  const auto refuse = [&](const char* name, const char* op, std::vector<Data> operands, const char* why) {
    c.push_back({.name = name,
                 .op = op,
                 .operands = std::move(operands),
                 .attrs = {{"padding", "SAME"}, {"stride_h", 1}, {"stride_w", 1}},
                 .results = {Values<int16_t>({1, 1, 1, 1}, {0}).Quantized(1, 0)},
                 .refused = why});
  };
  const Data zero = Values<int16_t>({1, 1, 1, 1}, {0}), x = zero.Quantized(1, 0);
  const Data w = I8({1, 1, 1, 1}, {0}).Quantized(1, 0);
  refuse("i16 with a zero point", "CONV_2D", {zero.Quantized(1, 3), w}, "i16 with a zero point");
  refuse("i16 with a zero point", "ADD", {x, zero.Quantized(1, 3)}, "i16 with a zero point");
  refuse("i16 weights", "DEPTHWISE_CONV_2D", {x, x}, "dtype i16");
  refuse("a bias of f32", "CONV_2D", {x, w, F32({1}, {0})}, "dtype f");
  refuse("bytes by i16", "BATCH_MATMUL", {w, x}, "i16");
}

const Suite kProducts("quantized products", [](Cases& c) {
  AddProducts<int8_t>(c, false);
  AddProducts<int8_t>(c, true);
  AddProducts<uint8_t>(c, false);
  AddProducts<int16_t>(c, false);
  AddProducts<int16_t>(c, true);
  AddHybrids(c);
  AddHybridImages(c);
  AddMatMuls(c);
  AddScales(c);
  AddRefusals(c);
});

}  // namespace
}  // namespace fusebox::conformance
