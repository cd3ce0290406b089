// SPDX-License-Identifier: Apache-2.0
// CONV_2D: filter [out, height, width, in per group]. DEPTHWISE_CONV_2D: filter [1, height, width, out].
#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/ops/window.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kConv{.input = 0, .filter = 1, .bias = 2, .channel_axis = 0};
// XNNPACK has no depthwise convolution with activations quantized at run time.
constexpr WeightOperands kDepthwise{
    .input = 0, .filter = 1, .bias = 2, .channel_axis = 3, .may_be_dynamic = false};

Tensor CheckImages(const NetworkNode& node, const WeightOperands& operands) {
  RequireArity(node, 2, 3);
  PlanWeights(node, operands);
  FusedRange(node);
  const Tensor filter = *node.constant(1);
  RequireRank(node.in(0), 4, Operand(0));
  RequireRank(filter, 4, Operand(1));
  RequireRank(node.out(0), 4, "result 0");
  node.require(node.in(0).dim(3) > 0, "SHAPE", "unknown number of channels");
  PaddingOf(node, ReadWindow(node), static_cast<uint32_t>(filter.dim(1)),
            static_cast<uint32_t>(filter.dim(2)));
  return filter;
}

void CheckBias(const NetworkNode& node, int64_t channels) {
  if (const auto bias = node.constant(2))
    node.require(bias->count() == channels, "SHAPE", "bias does not fit the filter", Operand(2));
}

void SupportsConv(const NetworkNode& node) {
  const Tensor filter = CheckImages(node, kConv);
  const int64_t channels = node.in(0).dim(3);
  const int64_t group = filter.dim(3);
  node.require(channels % group == 0 && filter.dim(0) % (channels / group) == 0, "SHAPE",
               "channels do not divide into groups");
  node.require(channels == group || !PlanCheckedWeights(node, kConv).dynamic, "GROUPS",
               "groups with weights of 8 bits and activations of 32");
  CheckBias(node, filter.dim(0));
}

// Returns how many pixels a product computes.
size_t PixelsOfProduct(const NetworkNode& node, const Window& w, const Weights& weights,
                       const Subgraph& graph) {
  const Tensor in = node.in(0);
  const Tensor out = node.out(0);
  if (weights.datatype != xnn_datatype_fp32 || weights.dynamic || graph.half() || w.dilation_width != 1)
    return 1;
  for (int i = 1; i < 4; ++i)
    if (in.dim(i) <= 0 || out.dim(i) <= 0) return 1;
  return static_cast<size_t>(
      PixelsAtOnce(out.dim(3), out.dim(2), static_cast<int64_t>(weights.dims[2]), w.stride_width));
}

// As PaddingOf, in numbers.
Padding PaddingOfImages(const NetworkNode& node, const Window& w, const Weights& weights) {
  if (!w.same) return {};
  const auto total = [&](int dim, int64_t stride, int64_t dilation) {
    const int64_t extent = (static_cast<int64_t>(weights.dims[static_cast<size_t>(dim)]) - 1) * dilation + 1;
    return static_cast<uint32_t>(
        std::max<int64_t>(0, (node.out(0).dim(dim) - 1) * stride + extent - node.in(0).dim(dim)));
  };
  const uint32_t y = total(1, w.stride_height, w.dilation_height);
  const uint32_t x = total(2, w.stride_width, 1);
  return {.top = y / 2, .right = x - x / 2, .bottom = y - y / 2, .left = x / 2, .flags = 0};
}

void DefinePixels(const NetworkNode& node, Subgraph& graph, Weights weights, size_t pixels) {
  const Window w = ReadWindow(node);
  const Padding pad = PaddingOfImages(node, w, weights);
  weights.pixels = pixels;
  weights.step = w.stride_width;
  weights.dims[0] *= pixels;
  weights.dims[2] += weights.step * (pixels - 1);
  const Dims& filter = weights.dims;
  const Dims result = DimsButOne(node.out(0));
  const Dims rows = {1, result[1], result[2] / pixels, filter[0]};
  Recipe recipe(Family::kConvolution);
  recipe.Add(size_t{1});  // groups
  const uint32_t input = graph.In(node, 0);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  graph.WithBias(node, 2, FusedRange(node), [&](uint32_t out, Range r) {
    const uint32_t sums = graph.Temporary(xnn_datatype_fp32, {}, rows);
    graph.Check(xnn_define_convolution_2d(
        graph.get(), pad.top, pad.right, pad.bottom, pad.left, static_cast<uint32_t>(filter[1]),
        static_cast<uint32_t>(filter[2]), w.stride_height, static_cast<uint32_t>(w.stride_width * pixels),
        w.dilation_height, 1, 1, filter[3], filter[0], r.min, r.max, input, ids.filter, ids.bias, sums, 0));
    graph.Check(xnn_define_static_reshape(graph.get(), result.size(), result.data(), sums, out, 0));
  });
}

bool IsProduct(const Window& w, const Weights& weights, const Subgraph& graph) {
  return weights.datatype == xnn_datatype_fp32 && !weights.dynamic && !graph.half() &&
         weights.dims[1] * weights.dims[2] == 1 && w.stride_height * w.stride_width == 1 &&
         IsBetterAsProduct(static_cast<int64_t>(weights.dims[0]));
}

void DefineProduct(const NetworkNode& node, Subgraph& graph, Weights weights) {
  weights.dims = {weights.dims[0], weights.dims[3]};
  const uint32_t input = graph.In(node, 0);
  const auto ids = graph.Pack(node, Recipe(Family::kFullyConnected), weights);
  graph.WithBias(node, 2, FusedRange(node), [&](uint32_t out, Range r) {
    graph.Check(xnn_define_fully_connected(graph.get(), r.min, r.max, input, ids.filter, ids.bias, out, 0));
  });
}

void DefineConv(const NetworkNode& node, Subgraph& graph) {
  const Tensor filter = *node.constant(1);
  const Window w = ReadWindow(node);
  const Range range = FusedRange(node);
  Weights weights = PlanCheckedWeights(node, kConv);
  weights.dims = DimsOf(filter);
  const size_t groups = static_cast<size_t>(node.in(0).dim(3)) / weights.dims[3];
  if (const size_t pixels = groups == 1 ? PixelsOfProduct(node, w, weights, graph) : 1; pixels > 1)
    return DefinePixels(node, graph, std::move(weights), pixels);
  if (groups == 1 && IsProduct(w, weights, graph)) return DefineProduct(node, graph, std::move(weights));
  weights.always_packed = weights.dims[3] == 1 && weights.dims[0] == groups;  // as depthwise ones
  Recipe recipe(Family::kConvolution);
  recipe.Add(groups);
  AddActivations(recipe, node.in(0), node.out(0));
  uint32_t input = graph.In(node, 0);
  if (weights.dynamic) input = graph.DynamicImages(node, 0, input);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  const auto height = static_cast<uint32_t>(weights.dims[1]);
  const auto width = static_cast<uint32_t>(weights.dims[2]);
  const Padding pad = PaddingOf(node, w, height, width);
  graph.WithBias(node, 2, range, [&](uint32_t out, Range r) {
    graph.Check(xnn_define_convolution_2d(
        graph.get(), pad.top, pad.right, pad.bottom, pad.left, height, width, w.stride_height, w.stride_width,
        w.dilation_height, w.dilation_width, static_cast<uint32_t>(groups), weights.dims[3],
        weights.dims[0] / groups, r.min, r.max, input, ids.filter, ids.bias, out, pad.flags));
  });
}

void SupportsDepthwise(const NetworkNode& node) {
  const Tensor filter = CheckImages(node, kDepthwise);
  node.require(filter.dim(0) == 1, "SHAPE", "the filter's first dim is not 1", Operand(1));
  node.require(filter.dim(3) % node.in(0).dim(3) == 0, "SHAPE", "outputs do not divide into channels");
  CheckBias(node, filter.dim(3));
}

void DefineDepthwise(const NetworkNode& node, Subgraph& graph) {
  const Window w = ReadWindow(node);
  const Range range = FusedRange(node);
  Weights weights = PlanCheckedWeights(node, kDepthwise);
  weights.dims = DimsOf(*node.constant(1));
  weights.channel_dim = 3;
  const auto channels = static_cast<size_t>(node.in(0).dim(3));
  const uint32_t input = graph.In(node, 0);
  const auto ids = graph.Private(node, weights);
  const auto height = static_cast<uint32_t>(weights.dims[1]);
  const auto width = static_cast<uint32_t>(weights.dims[2]);
  const Padding pad = PaddingOf(node, w, height, width);
  graph.WithBias(node, 2, range, [&](uint32_t out, Range r) {
    graph.Check(xnn_define_depthwise_convolution_2d(
        graph.get(), pad.top, pad.right, pad.bottom, pad.left, height, width, w.stride_height, w.stride_width,
        w.dilation_height, w.dilation_width, static_cast<uint32_t>(weights.dims[3] / channels), channels,
        r.min, r.max, input, ids.filter, ids.bias, out, pad.flags));
  });
}

constexpr Operation kTable[] = {
    {"CONV_2D", Accept::kAlone, SupportsConv, DefineConv},
    {"DEPTHWISE_CONV_2D", Accept::kAlone, SupportsDepthwise, DefineDepthwise},
};

}  // namespace

constinit const OperationTable kConvolutionOps = kTable;

}  // namespace fusebox::xnnpack
