// SPDX-License-Identifier: Apache-2.0
// TRANSPOSE by a constant permutation.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

Dims Permutation(const NetworkNode& node) {
  const int rank = node.in(0).rank();
  const std::vector<int64_t> values = Integers(node, 1, "permutation");
  node.require(rank > 0 && static_cast<int>(values.size()) == rank, "SHAPE",
               "the permutation does not match the rank", Operand(1));
  Dims permutation;
  std::vector<bool> seen(values.size());
  for (const int64_t v : values) {
    permutation.push_back(Axis(v, rank));
    node.require(!seen[permutation.back()], "ATTR", "not a permutation", Operand(1));
    seen[permutation.back()] = true;
  }
  return permutation;
}

void Supports(const NetworkNode& node) {
  RequireArity(node, 2, 2);
  RequireValue(node.in(0), Operand(0));
  RequireValue(node.out(0), "result 0");
  RequireSameQuant(node.in(0), node.out(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  Permutation(node);
}

void Define(const NetworkNode& node, Subgraph& graph) {
  const Dims permutation = Permutation(node);
  graph.Check(xnn_define_static_transpose(graph.get(), permutation.size(), permutation.data(),
                                          graph.In(node, 0), graph.Out(node), 0));
}

constexpr Operation kTable[] = {{"TRANSPOSE", Accept::kJoin, Supports, Define}};

}  // namespace

constinit const OperationTable kTransposeOps = kTable;

}  // namespace fusebox::xnnpack
