// SPDX-License-Identifier: Apache-2.0
// CONV_2D: filter [out, height, width, in per group]. DEPTHWISE_CONV_2D: filter [1, height, width, out].
#include "plugins/xnnpack/ops/op.h"
#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/ops/window.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kConv{.input = 0, .filter = 1, .bias = 2, .channel_axis = 0};
// XNNPACK has no depthwise convolution with activations quantized at run time.
constexpr WeightOperands kDepthwise{
    .input = 0, .filter = 1, .bias = 2, .channel_axis = 3, .may_be_dynamic = false};

// XNNPACK computes larger depthwise windows as matrix products of one column per channel, which is many times
// slower than the kernels.
constexpr int64_t kMostTaps = 25;
// As matrix products, so few are still faster than the kernels.
constexpr int64_t kFewChannels = 4;

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
  const int64_t channels = node.in(0).dim(3), group = filter.dim(3);
  node.require(channels % group == 0 && filter.dim(0) % (channels / group) == 0, "SHAPE",
               "channels do not divide into groups");
  node.require(channels == group || !PlanCheckedWeights(node, kConv).dynamic, "GROUPS",
               "groups with weights of 8 bits and activations of 32");
  CheckBias(node, filter.dim(0));
}

void DefineConv(const NetworkNode& node, Subgraph& graph) {
  const Tensor filter = *node.constant(1);
  const Window w = ReadWindow(node);
  const Range range = FusedRange(node);
  Weights weights = PlanCheckedWeights(node, kConv);
  weights.dims = DimsOf(filter);
  const size_t groups = static_cast<size_t>(node.in(0).dim(3)) / weights.dims[3];
  weights.always_packed = weights.dims[3] == 1 && weights.dims[0] == groups;  // as depthwise ones
  Recipe recipe(Family::kConvolution);
  recipe.Add(groups);
  AddActivations(recipe, node.in(0), node.out(0));
  uint32_t input = graph.In(node, 0);
  if (weights.dynamic) input = graph.DynamicImages(node, 0, input);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  const auto height = static_cast<uint32_t>(weights.dims[1]), width = static_cast<uint32_t>(weights.dims[2]);
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
  node.require(
      filter.dim(1) * filter.dim(2) <= kMostTaps || node.in(0).dim(3) <= kFewChannels, "SIZE",
      "a window of " + std::to_string(filter.dim(1) * filter.dim(2)) + " pixels, which is slow in XNNPACK");
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
  const auto height = static_cast<uint32_t>(weights.dims[1]), width = static_cast<uint32_t>(weights.dims[2]);
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
