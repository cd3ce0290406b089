// SPDX-License-Identifier: Apache-2.0
// Convolutions and FULLY_CONNECTED of stored values: sums are scaled and rounded as in stock TFLite.
#include <gtest/gtest.h>

#include "tests/peers/rounding.h"
#include "tests/testing/peer.h"

namespace fusebox::testing {
namespace {

using xnnpack_test::Net, xnnpack_test::Options, xnnpack_test::Q;

// A convolution and its bias; `in` and `out` are of one dtype.
struct ProductParts {
  Q in, out;
  std::vector<Q> weights;
  int64_t channels;
};

ProductParts Parts(Dice& dice, DType dtype, int64_t channels, bool per_channel, int64_t depth) {
  ProductParts p{.channels = channels};
  p.in = {dice.Scale(1e-3, 0.5), dice.Zero(dtype)};
  for (int64_t c = 0; c < (per_channel ? channels : 1); ++c)
    p.weights.push_back({dice.Scale(1e-3, 2e-2), dtype == DType::kU8 ? dice.Int(100, 150) : 0});
  const double span = dtype == DType::kI16 ? 256 * 127.0 : 127;
  // A result that spans the type's range.
  p.out = {
      static_cast<float>(p.in.scale * p.weights[0].scale * dice.Scale(0.3, 3) * 70 * span / 127 *
                         std::sqrt(static_cast<double>(depth)) / 2 * (dtype == DType::kI16 ? 1.0 / 256 : 1)),
      dice.Zero(dtype)};
  return p;
}

ValueId WeightsOf(Net& net, Dice& dice, DType dtype, const Dims& dims, const ProductParts& p, int axis) {
  const auto count = static_cast<size_t>(CountOf(dims));
  if (dtype == DType::kU8)
    return net.Const<uint8_t>(dtype, dims, dice.Values<uint8_t>(count, 0, 255), p.weights, axis);
  return net.Const<int8_t>(DType::kI8, dims, dice.Values<int8_t>(count, -127, 127), p.weights, axis);
}

ValueId BiasOf(Net& net, Dice& dice, DType dtype, const ProductParts& p) {
  std::vector<Q> q = p.weights;
  for (Q& each : q) each = {each.scale * p.in.scale, 0};
  const auto count = static_cast<size_t>(p.channels);
  if (dtype == DType::kI16)
    return net.Const<int64_t>(DType::kI64, {p.channels}, dice.Values<int64_t>(count, -90000, 90000), q);
  return net.Const<int32_t>(DType::kI32, {p.channels}, dice.Values<int32_t>(count, -5000, 5000), q);
}

Family Conv(std::string name, Op op, DType dtype, bool per_channel, int64_t most_channels) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            Net net;
            const bool depthwise = op == Op::kDepthwiseConv2D;
            const int64_t kernel = dice.Int(1, 4), depth = dice.Int(1, 12);
            const Dims in = {dice.Int(1, 2), dice.Int(4, 30), dice.Int(4, 30), depth};
            const int64_t outs = depthwise ? depth * dice.Int(1, 2) : dice.Int(1, most_channels);
            const Dims filter = depthwise ? Dims{1, kernel, kernel, outs} : Dims{outs, kernel, kernel, depth};
            const ProductParts p =
                Parts(dice, dtype, outs, per_channel, kernel * kernel * (depthwise ? 1 : depth));
            const ValueId x = net.Input(dtype, in, p.in),
                          w = WeightsOf(net, dice, dtype, filter, p, depthwise ? 3 : 0),
                          b = BiasOf(net, dice, dtype, p);
            Attrs attrs = Options("padding", "SAME", "stride_h", 1, "stride_w", 1);
            if (depthwise) attrs.Set("depth_multiplier", outs / depth);
            what = TextOf(in) + " by " + TextOf(filter);
            return net.Take({net.Add(op, {x, w, b}, dtype, {in[0], in[1], in[2], outs}, attrs, p.out)});
          }};
}

Family Transposed(std::string name, DType dtype, bool per_channel) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            Net net;
            const int64_t depth = dice.Int(1, 8), outs = dice.Int(1, 5), kernel = dice.Int(2, 4);
            const Dims in = {dice.Int(1, 2), dice.Int(2, 20), dice.Int(2, 20), depth},
                       filter = {outs, kernel, kernel, depth}, out = {in[0], in[1] * 2, in[2] * 2, outs};
            const ProductParts p = Parts(dice, dtype, outs, per_channel, kernel * kernel * depth / 4 + 1);
            const ValueId x = net.Input(dtype, in, p.in), w = WeightsOf(net, dice, dtype, filter, p, 0),
                          b = BiasOf(net, dice, dtype, p),
                          size = net.Const<int32_t>(DType::kI32, {4}, {out.begin(), out.end()});
            what = TextOf(in) + " by " + TextOf(filter);
            return net.Take({net.Add(Op::kTransposeConv, {size, w, x, b}, dtype, out,
                                     Options("padding", "SAME", "stride_h", 2, "stride_w", 2), p.out)});
          }};
}

Family Dense(std::string name, DType dtype, int64_t most_channels) {
  return {std::move(name), [=](Dice& dice, std::string& what) {
            Net net;
            const int64_t depth = dice.Int(1, 200), outs = dice.Int(1, most_channels), rows = dice.Int(1, 60);
            const ProductParts p = Parts(dice, dtype, outs, false, depth);
            const ValueId x = net.Input(dtype, {rows, depth}, p.in),
                          w = WeightsOf(net, dice, dtype, {outs, depth}, p, 0),
                          b = BiasOf(net, dice, dtype, p);
            what = TextOf({rows, depth}) + " to " + std::to_string(outs);
            return net.Take({net.Add(Op::kFullyConnected, {x, w, b}, dtype, {rows, outs}, {}, p.out)});
          }};
}

// Sums that are a bias and nothing else, each as near as can be to where the result rounds up. What is not
// quite the scale that stock has shows here.
Family Halves(std::string name, Op op, DType dtype, bool per_channel, int64_t most_channels) {
  return {
      "HalvesOf" + std::move(name),
      [=](Dice& dice, std::string& what) {
        Net net;
        const bool depthwise = op == Op::kDepthwiseConv2D, dense = op == Op::kFullyConnected;
        const int64_t outs = dice.Int(1, most_channels), depth = depthwise ? outs : 2;
        ProductParts p = Parts(dice, dtype, outs, per_channel, 1);
        p.out.scale = p.in.scale * p.weights[0].scale * dice.Scale(1e4, dtype == DType::kI16 ? 1e5 : 1e7);
        const Dims pixels = dense ? Dims{3} : Dims{1, 2, 3};
        Dims in = pixels, out = pixels,
             filter = dense       ? Dims{outs, depth}
                      : depthwise ? Dims{1, 1, 1, outs}
                                  : Dims{outs, 1, 1, depth};
        in.push_back(depth), out.push_back(outs);
        const ValueId x = net.Input(dtype, in, p.in),
                      w = WeightsOf(net, dice, dtype, filter, p, depthwise ? 3 : 0);
        std::vector<int64_t> bias;
        std::vector<Q> q = p.weights;
        for (Q& each : q) each = {each.scale * p.in.scale, 0};
        for (int64_t c = 0; c < outs; ++c) {
          const double scale = double{p.in.scale} * p.weights[per_channel ? static_cast<size_t>(c) : 0].scale;
          const double step = static_cast<double>(dice.Int(dtype == DType::kI16 ? -3000 : -128, 127)) + 0.5;
          bias.push_back(std::llround(step * p.out.scale / scale) + dice.Int(-1, 1));
        }
        const ValueId b = dtype == DType::kI16
                              ? net.Const<int64_t>(DType::kI64, {outs}, bias, q)
                              : net.Const<int32_t>(DType::kI32, {outs}, {bias.begin(), bias.end()}, q);
        std::vector<ValueId> operands = {x, w, b};
        Attrs attrs = dense ? Attrs{} : Options("padding", "SAME", "stride_h", 1, "stride_w", 1);
        if (depthwise) attrs.Set("depth_multiplier", 1);
        if (op == Op::kTransposeConv)
          operands = {net.Const<int32_t>(DType::kI32, {4}, {out.begin(), out.end()}), w, x, b};
        what = TextOf(in) + " by " + TextOf(filter);
        return net.Take({net.Add(op, operands, dtype, out, attrs, p.out)});
      },
      true};
}

std::vector<Family> Families() {
  const auto i8 = DType::kI8, u8 = DType::kU8, i16 = DType::kI16;
  std::vector<Family> all = {
      Conv("ConvOneChannel", Op::kConv2D, i8, false, 1),
      Conv("ConvPerTensor", Op::kConv2D, i8, false, 9),
      Conv("ConvPerChannel", Op::kConv2D, i8, true, 9),
      Conv("ConvOneChannelU8", Op::kConv2D, u8, false, 1),
      Conv("ConvU8", Op::kConv2D, u8, false, 9),
      Conv("ConvI16PerTensor", Op::kConv2D, i16, false, 9),
      Conv("ConvI16PerChannel", Op::kConv2D, i16, true, 9),
      Conv("DepthwisePerTensor", Op::kDepthwiseConv2D, i8, false, 0),
      Conv("DepthwisePerChannel", Op::kDepthwiseConv2D, i8, true, 0),
      Conv("DepthwiseU8", Op::kDepthwiseConv2D, u8, false, 0),
      Conv("DepthwiseI16", Op::kDepthwiseConv2D, i16, false, 0),
      Transposed("TransposedPerTensor", i8, false),
      Transposed("TransposedPerChannel", i8, true),
      Transposed("TransposedU8", u8, false),
      Transposed("TransposedI16", i16, false),
      Dense("DenseOneOutput", i8, 1),
      Dense("Dense", i8, 20),
      Dense("DenseOneOutputU8", u8, 1),
      Dense("DenseU8", u8, 20),
      Dense("DenseI16", i16, 20),
  };
  for (const auto& [dtype, type] : {std::pair(i8, "I8"), {u8, "U8"}, {i16, "I16"}}) {
    for (const auto& [op, of] : {std::pair(Op::kConv2D, "Conv"),
                                 {Op::kDepthwiseConv2D, "Depthwise"},
                                 {Op::kTransposeConv, "Transposed"},
                                 {Op::kFullyConnected, "Dense"}}) {
      all.push_back(Halves(of + std::string(type) + "OneChannel", op, dtype, false, 1));
      all.push_back(Halves(of + std::string(type), op, dtype, false, 150));
      if (op != Op::kFullyConnected && dtype != u8)
        all.push_back(Halves(of + std::string(type) + "PerChannel", op, dtype, true, 150));
    }
  }
  return all;
}

class Products : public ::testing::TestWithParam<Family> {};

TEST_P(Products, AreStocks) {
  FUSEBOX_NEEDS_STOCK();
  ExpectStocksValues(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Rounded, Products, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusebox::testing
