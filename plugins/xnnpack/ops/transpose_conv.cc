// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE_CONV: output shape, filter [out, height, width, in], input, bias.
#include "plugins/xnnpack/ops/op.h"
#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/ops/window.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kOperands{.input = 2, .filter = 1, .bias = 3, .channel_axis = 0};

// What XNNPACK takes off the full result of one dimension before and behind, and adds behind.
struct Cut {
  uint32_t before = 0, behind = 0, adjustment = 0;
};

Cut CutOf(const Site& site, int dim, const Window& window, int64_t filter) {
  const int64_t stride = dim == 1 ? window.stride_height : window.stride_width;
  const int64_t in = site.in(2).dim(dim), out = site.out(0).dim(dim);
  site.require(in > 0 && out > 0, "SHAPE", "sizes of images are known only when it runs");
  // XNNPACK works it off in as many parts as a step has pixels, and none may be empty.
  site.require(out >= stride, "SHAPE", "the output is smaller than a step");
  const int64_t full = (in - 1) * stride + filter;
  // Only then are the kernels' paddings, which are those of a convolution of the output, what is cut off
  // here.
  site.require(window.same ? in == (out + stride - 1) / stride : out >= full, "SHAPE",
               "the input is not what a convolution would make of the output");
  if (out >= full) {
    site.require(out - full < stride, "SHAPE", "the output is larger than the input makes it");
    return {0, 0, static_cast<uint32_t>(out - full)};
  }
  const auto cut = static_cast<uint32_t>(full - out);
  return {cut / 2, cut - cut / 2, 0};
}

void Supports(const Site& site) {
  RequireArity(site, 3, 4);
  PlanWeights(site, kOperands);
  FusedRange(site);
  const Tensor filter = *site.constant(1);
  RequireRank(filter, 4, Operand(1));
  RequireRank(site.in(2), 4, Operand(2));
  RequireRank(site.out(0), 4, "result 0");
  Integers(site, 0, "output shape");
  site.require(site.in(2).dim(3) == filter.dim(3), "SHAPE", "the input's channels are not the filter's");
  if (const auto bias = site.constant(3))
    site.require(bias->count() == filter.dim(0), "SHAPE", "bias does not fit the filter", Operand(3));
  for (int dim = 1; dim <= 2; ++dim) CutOf(site, dim, ReadWindow(site), filter.dim(dim));
}

void Define(const Site& site, Subgraph& graph) {
  const Range range = FusedRange(site);
  Weights weights = PlanWeights(site, kOperands);
  weights.dims = DimsOf(*site.constant(1));
  weights.always_packed = true;
  const Window window = ReadWindow(site);
  const Cut height = CutOf(site, 1, window, site.constant(1)->dim(1));
  const Cut width = CutOf(site, 2, window, site.constant(1)->dim(2));
  Recipe recipe(Family::kTransposedConvolution);
  recipe.Add(window.stride_height, window.stride_width);
  AddActivations(recipe, site.in(2), site.out(0));
  uint32_t input = graph.In(site, 2);
  if (weights.dynamic) input = graph.DynamicImages(site, 2, input);
  const auto ids = graph.Pack(site, std::move(recipe), weights);
  graph.WithBias(site, 3, range, [&](uint32_t out, Range r) {
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
