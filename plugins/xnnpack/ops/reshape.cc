// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE and EXPAND_DIMS: defined by the dims of the result; one of them may be unknown.
#include "plugins/xnnpack/partition/op.h"

namespace fusebox::xnnpack {
namespace {

void Supports(const NetworkNode& node) {
  RequireValue(node.in(0), Operand(0));
  RequireValue(node.out(0), "result 0");
  RequireSameQuant(node.in(0), node.out(0));
  node.require(!node.constant(0), "CONST", "its operand is constant");
  node.require(node.out(0).rank() > 0, "RANK", "a scalar result");
  int unknown = 0;
  for (const int64_t d : node.out(0).dims()) unknown += d < 0;
  node.require(unknown <= 1, "SHAPE", "unknown shape", "result 0");
}

void Define(const NetworkNode& node, Subgraph& graph) {
  Dims dims;
  for (const int64_t d : node.out(0).dims()) dims.push_back(d < 0 ? 0 : static_cast<size_t>(d));
  graph.Check(xnn_define_static_reshape(graph.get(), dims.size(), dims.data(), graph.In(node, 0),
                                        graph.Out(node), 0));
}

constexpr Operation kTable[] = {
    {"EXPAND_DIMS", Accept::kJoin, Supports, Define, Joins::kInPlace},
    {"RESHAPE", Accept::kJoin, Supports, Define, Joins::kInPlace},
    {"SQUEEZE", Accept::kJoin, Supports, Define, Joins::kInPlace},
};

}  // namespace

constinit const OperationTable kReshapeOps = kTable;

}  // namespace fusebox::xnnpack
