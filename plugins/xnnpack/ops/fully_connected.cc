// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED: rows of the input times filter [out, in].
#include <algorithm>

#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/packing/int4.h"
#include "plugins/xnnpack/partition/op.h"
#include "plugins/xnnpack/partition/releases.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kOperands{
    .input = 0, .filter = 1, .bias = 2, .channel_axis = 0, .may_be_int4 = true};

bool KeepsDims(const NetworkNode& node) { return node.attrs().b("keep_num_dims", false); }

void RequireCorrectNibbles(const NetworkNode& node, const Weights& weights, int64_t columns) {
  const bool blocks = weights.datatype == xnn_datatype_qbint4;
  if (!blocks && weights.datatype != xnn_datatype_qcint4) return;
  const Tensor input = node.in(0);
  const int64_t rows = input.is_static() ? input.count() / columns : 0;
  node.require(MultipliesNibbles(blocks, static_cast<size_t>(rows)), "CPU",
               "XNNPACK computes incorrect products of " + (rows > 0 ? std::to_string(rows) : "some") +
                   " rows by 4-bit weights on this CPU");
}

bool IsConvolution(const NetworkNode& node, const Weights& weights) {
  const Tensor out = node.out(0);
  if (weights.datatype != xnn_datatype_fp32 || weights.dynamic || out.rank() < 2) return false;
  const auto dims = out.dims();
  int64_t inputs = node.constant(1)->dim(1);
  for (const int64_t d : dims.first(dims.size() - 1)) inputs *= std::max<int64_t>(d, 1);
  return IsBetterAsConvolution(node.constant(1)->dim(0), inputs) &&
         std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }) <= 1;
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 3);
  const Weights weights = PlanWeights(node, kOperands);
  FusedRange(node);
  const Tensor filter = *node.constant(1);
  const Tensor input = node.in(0);
  RequireRank(filter, 2, Operand(1));
  node.require(node.attrs().s("weights_format", "DEFAULT") == "DEFAULT", "ATTR", "shuffled weights");
  if (const auto bias = node.constant(2))
    node.require(bias->count() == filter.dim(0), "SHAPE", "bias does not fit the filter", Operand(2));
  if (KeepsDims(node)) {
    node.require(input.rank() >= 1 && input.dim(-1) == filter.dim(1), "SHAPE",
                 "rows of input and filter differ in length");
    return RequireCorrectNibbles(node, weights, filter.dim(1));
  }
  RequireRank(node.out(0), 2, "result 0");
  node.require(!input.is_static() || input.count() % filter.dim(1) == 0, "SHAPE",
               "the input does not divide into rows of the filter's length");
  node.require(input.is_static() || (input.rank() > 0 && input.dim(-1) == filter.dim(1)), "SHAPE",
               "unknown length of the input's rows");
  RequireCorrectNibbles(node, weights, filter.dim(1));
}

// The input, reshaped to rows of the filter's length if needed.
uint32_t Rows(const NetworkNode& node, Subgraph& graph, size_t length, Dims& dims) {
  const uint32_t input = graph.In(node, 0);
  const bool rows_as_is = KeepsDims(node) || kFlattensRows != 0 || dims.size() == 2;
  if (rows_as_is && !dims.empty() && dims.back() == length) return input;
  size_t count = 1;
  for (const size_t d : dims) count *= d;
  dims = {count / length, length};
  const uint32_t matrix = graph.Temporary(DatatypeOf(node.in(0)), TensorQuantOf(node.in(0)), dims);
  graph.Check(xnn_define_static_reshape(graph.get(), dims.size(), dims.data(), input, matrix, 0));
  return matrix;
}

// A convolution of one pixel over an image of one column.
void DefineConvolution(const NetworkNode& node, Subgraph& graph, Weights weights) {
  const size_t columns = weights.dims[0];
  const size_t length = weights.dims[1];
  const Dims image = {1, 0, 1, length};
  const Dims result = DimsButOne(node.out(0));
  const uint32_t input = graph.Temporary(xnn_datatype_fp32, {}, {1, 1, 1, length});
  graph.Check(
      xnn_define_static_reshape(graph.get(), image.size(), image.data(), graph.In(node, 0), input, 0));
  weights.dims = {columns, 1, 1, length};
  Recipe recipe(Family::kConvolution);
  recipe.Add(size_t{1});  // groups
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  graph.WithBias(node, 2, FusedRange(node), [&](uint32_t out, Range r) {
    const uint32_t sums = graph.Temporary(xnn_datatype_fp32, {}, {1, 1, 1, columns});
    graph.Check(xnn_define_convolution_2d(graph.get(), 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, length, columns,
                                          r.min, r.max, input, ids.filter, ids.bias, sums, 0));
    graph.Check(xnn_define_static_reshape(graph.get(), result.size(), result.data(), sums, out, 0));
  });
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const Range range = FusedRange(node);
  Weights weights = PlanCheckedWeights(node, kOperands);
  weights.dims = DimsOf(*node.constant(1));
  if (IsConvolution(node, weights)) return DefineConvolution(node, graph, std::move(weights));
  Recipe recipe(Family::kFullyConnected);
  AddActivations(recipe, node.in(0), node.out(0));
  Dims dims = DimsOf(node.in(0));
  uint32_t input = Rows(node, graph, weights.dims[1], dims);
  if (weights.dynamic) input = graph.Dynamic(input, dims, 1);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  const uint32_t flags = KeepsDims(node) ? 0 : kFlattensRows;
  graph.WithBias(node, 2, range, [&](uint32_t out, Range r) {
    graph.Check(
        xnn_define_fully_connected(graph.get(), r.min, r.max, input, ids.filter, ids.bias, out, flags));
  });
}

constexpr Operation kTable[] = {{"FULLY_CONNECTED", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kFullyConnectedOps = kTable;

}  // namespace fusebox::xnnpack
