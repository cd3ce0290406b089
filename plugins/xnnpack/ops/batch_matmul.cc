// SPDX-License-Identifier: Apache-2.0
// BATCH_MATMUL. With a constant second operand of two dims it is a fully connected op with cached weights;
// XNNPACK's matrix product packs a constant into private memory.
#include "plugins/xnnpack/ops/weights.h"
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

constexpr WeightOperands kOperands{
    .input = 0, .filter = 1, .bias = 2, .channel_axis = 0, .may_be_dynamic = false};

bool IsFullyConnected(const NetworkNode& node) {
  const auto filter = node.constant(1);
  if (!filter || filter->rank() < 2 || filter->rank() > node.in(0).rank()) return false;
  for (int i = 0; i + 2 < filter->rank(); ++i)
    if (filter->dim(i) != 1) return false;
  return true;
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 2);
  RequireFloat(node.in(0), Operand(0));
  RequireFloat(node.in(1), Operand(1));
  RequireFloat(node.out(0), "result 0");
  node.require(!node.attrs().b("adj_x", false), "ATTR", "adj_x is set", "attr adj_x");
  const Tensor a = node.in(0);
  const Tensor b = node.in(1);
  node.require(a.rank() >= 2 && b.rank() >= 2, "RANK", "an operand has less than 2 dims");
  node.require(!node.constant(0), "NONCONST", "the first operand is constant");
  const bool adjoint = node.attrs().b("adj_y", false);
  const int64_t k = a.dim(-1);
  const int64_t rows = b.dim(adjoint ? -1 : -2);
  node.require(k == rows || k < 0 || rows < 0, "SHAPE", "the inner dims differ");
  if (IsFullyConnected(node)) {
    node.require(k > 0, "SHAPE", "unknown length of the input's rows");
    PlanWeights(node, kOperands);
  }
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const uint32_t flags = node.attrs().b("adj_y", false) ? XNN_FLAG_TRANSPOSE_B : 0;
  if (!IsFullyConnected(node)) {
    graph.Check(xnn_define_batch_matrix_multiply(graph.get(), graph.In(node, 0), graph.In(node, 1),
                                                 graph.Out(node), flags));
    return;
  }
  Weights weights = PlanCheckedWeights(node, kOperands);
  const Dims dims = DimsOf(*node.constant(1));
  weights.dims = {dims[dims.size() - 2], dims.back()};
  const uint32_t transpose = flags == 0 ? XNN_FLAG_TRANSPOSE_WEIGHTS : 0;
  Recipe recipe(Family::kFullyConnected);
  recipe.Add(transpose);
  const auto ids = graph.Pack(node, std::move(recipe), weights);
  graph.Check(xnn_define_fully_connected(graph.get(), -INFINITY, INFINITY, graph.In(node, 0), ids.filter,
                                         XNN_INVALID_VALUE_ID, graph.Out(node), transpose));
}

constexpr Operation kTable[] = {{"BATCH_MATMUL", Accept::kAlone, Supports, Define}};

}  // namespace

constinit const OperationTable kBatchMatMulOps = kTable;

}  // namespace fusebox::xnnpack
