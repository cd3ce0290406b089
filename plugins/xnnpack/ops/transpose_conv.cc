// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: output shape, filter [out, height, width, in], input, bias.
#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/ops/window.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kOperands{.input = 2, .filter = 1, .bias = 3, .channel_axis = 0};

// XNNPACK's cropping of the full result before and after one dimension, and the padding after it.
struct Cut {
  uint32_t before = 0;
  uint32_t behind = 0;
  uint32_t adjustment = 0;
};

Cut CutOf(const NetworkNode& node, int dim, const Window& window, int64_t filter) {
  const int64_t stride = dim == 1 ? window.stride_height : window.stride_width;
  const int64_t in = node.in(2).dim(dim);
  const int64_t out = node.out(0).dim(dim);
  node.require(in > 0 && out > 0, "SHAPE", "unknown image size");
  // XNNPACK splits it into one part per pixel of a step; no part may be empty.
  node.require(out >= stride, "SHAPE", "the output is smaller than the stride");
  const int64_t full = (in - 1) * stride + filter;
  // Only then do the kernels' paddings (of a convolution of the output) equal the cropping here.
  node.require(window.same ? in == (out + stride - 1) / stride : out >= full, "SHAPE",
               "the input size does not match a convolution of the output");
  if (out >= full) {
    node.require(out - full < stride, "SHAPE", "the output is larger than the input allows");
    return {0, 0, static_cast<uint32_t>(out - full)};
  }
  const auto cut = static_cast<uint32_t>(full - out);
  return {cut / 2, cut - cut / 2, 0};
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 3, 4);
  PlanWeights(node, kOperands);
  FusedRange(node);
  const Tensor filter = *node.constant(1);
  RequireRank(filter, 4, Operand(1));
  RequireRank(node.in(2), 4, Operand(2));
  RequireRank(node.out(0), 4, "result 0");
  Integers(node, 0, "output shape");
  node.require(node.in(2).dim(3) == filter.dim(3), "SHAPE", "input and filter differ in channels");
  if (const auto bias = node.constant(3))
    node.require(bias->count() == filter.dim(0), "SHAPE", "bias does not fit the filter", Operand(3));
  for (int dim = 1; dim <= 2; ++dim) CutOf(node, dim, ReadWindow(node), filter.dim(dim));
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const Range range = FusedRange(node);
  Weights weights = PlanCheckedWeights(node, kOperands);
  weights.dims = DimsOf(*node.constant(1));
  weights.always_packed = true;
  const Window window = ReadWindow(node);
  const Cut height = CutOf(node, 1, window, node.constant(1)->dim(1));
  const Cut width = CutOf(node, 2, window, node.constant(1)->dim(2));
  Recipe recipe(Family::kTransposedConvolution);
  recipe.Add(window.stride_height, window.stride_width);
  AddActivations(recipe, node.in(2), node.out(0));
  uint32_t input = graph.In(node, 2);
  if (weights.dynamic) input = graph.DynamicImages(node, 2, input);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  graph.WithBias(node, 3, range, [&](uint32_t out, Range r) {
    graph.Check(xnn_define_deconvolution_2d(
        graph.get(), height.before, width.behind, height.behind, width.before, height.adjustment,
        width.adjustment, static_cast<uint32_t>(weights.dims[1]), static_cast<uint32_t>(weights.dims[2]),
        window.stride_height, window.stride_width, 1, 1, 1, weights.dims[3], weights.dims[0], r.min, r.max,
        input, ids.filter, ids.bias, out, 0));
  });
}

constexpr Operation kTable[] = {{"TRANSPOSE_CONV", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kTransposeConvOps = kTable;

}  // namespace fusebox::xnnpack
